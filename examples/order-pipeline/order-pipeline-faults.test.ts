import { DatabaseSync } from "node:sqlite";
import { setImmediate as turn } from "node:timers/promises";
import { CircuitOpenError, type Policy } from "sluice";
import { seededRandom } from "sluice/testing";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Notify } from "./order-pipeline.ts";
import { IMPATIENT, lamp, Stage, times } from "./order-pipeline.stage.ts";
import type { Behaviour } from "./payment-server.ts";

let stage: Stage;

beforeEach(async () => {
  stage = await Stage.open();
});
afterEach(() => stage.close());

it("keeps what fails for good with its reason, and goes on where it was once it is redriven", async () => {
  stage.server.behave = (key) => (key === "charge-bad" ? "busy" : "well");
  await using shop = await stage.shop();
  const { orders, book } = shop;
  book.restock("lamp", 2);
  await orders.take([lamp("bad"), lamp("good")]);
  orders.start();
  await orders.idle();
  expect(book.states()).toEqual({ accepted: 1, allocated: 1 });
  const reason = "HttpStatusError: the server answered 503";
  expect(await orders.deadLetters()).toMatchObject([{ queue: "charge", payload: { order: "bad" }, reason }]);
  expect(stage.server.requests.filter((key) => key === "charge-bad")).toHaveLength(10); // its attempts, none within another
  stage.server.behave = () => "well";
  expect(await orders.redrive()).toBe(1);
  await orders.idle();
  expect([book.states(), stage.server.balance("bad")]).toEqual([{ allocated: 2 }, 1_250]);
});

it("counts no attempt that a breaker refused: nobody was asked", async () => {
  let refusals = 0;
  const breaker: Policy = {
    run(fn, options) {
      if (refusals === 10) return Promise.resolve(fn({ signal: options?.signal }));
      refusals += 1;
      return Promise.reject(new CircuitOpenError(1));
    },
  };
  await using shop = await stage.shop({ breaker });
  const { orders, book } = shop;
  book.restock("lamp", 1);
  await orders.take([lamp("a")]);
  orders.start();
  await orders.idle();
  expect([book.states(), await orders.deadLetters()]).toEqual([{ allocated: 1 }, []]);
});

it("goes on in another process with what was under way, and charges once", async () => {
  stage.server.behave = times(1, "late");
  const ids = Array.from({ length: 30 }, (_, index) => `order-${index}`);
  {
    await using shop = await stage.shop(IMPATIENT);
    shop.book.restock("lamp", 20);
    await shop.orders.take(ids.map(lamp));
    shop.orders.start();
    while (stage.server.requests.length === 0) await turn();
  }
  expect(stage.told).toEqual([]);
  await using shop = await stage.shop(IMPATIENT);
  const { orders, book } = shop;
  orders.start();
  await orders.idle();
  expect(book.states()).toEqual({ allocated: 20, refunded: 10 });
  expect([book.stock("lamp"), stage.told.length, new Set(stage.told).size]).toEqual([0, 30, 30]);
});

it("takes an order back whose job can't be added, and has it once it comes again", async () => {
  await using shop = await stage.shop();
  const { orders, book } = shop;
  book.restock("lamp", 1);
  const disk = new DatabaseSync(stage.path, { timeout: 5_000 });
  disk.exec("CREATE TRIGGER full BEFORE INSERT ON sluice_jobs BEGIN SELECT RAISE(ABORT, 'no room'); END");
  expect(() => book.accept(lamp("a"))).toThrow("no room");
  expect(book.states()).toEqual({});
  disk.exec("DROP TRIGGER full");
  disk.close();
  expect(book.accept(lamp("a"))).toBe(true);
  orders.start();
  await orders.idle();
  expect([book.states(), stage.server.requests]).toEqual([{ allocated: 1 }, ["charge-a"]]);
});

it("makes each move once, however often its step is done", async () => {
  await using shop = await stage.shop();
  const { book, orders } = shop;
  book.restock("lamp", 5);
  await orders.take([lamp("a"), lamp("b"), { ...lamp("c"), quantity: 6 }]);
  for (let repetition = 0; repetition < 2; repetition += 1) {
    book.move("a", "accepted", "charged", "allocate");
    book.allocate("a");
    book.move("b", "accepted", "declined", "notify");
    book.move("c", "accepted", "charged", "allocate");
    book.allocate("c");
    book.move("c", "unallocated", "refunded", "notify");
  }
  expect([book.states(), book.stock("lamp")]).toEqual([{ allocated: 1, declined: 1, refunded: 1 }, 4]);
  orders.start(); // the charges and the refund find that they have been done
  await orders.idle();
  expect([stage.server.requests, stage.told.toSorted()]).toEqual([[], ["a allocated", "b declined", "c refunded"]]);
});

it("tells the customer again with the same key when that failed", async () => {
  const keys: string[] = [];
  const notify: Notify = async (order, context) => {
    keys.push(context.idempotencyKey);
    if (keys.length === 1) throw new Error("the mail server is away");
    await stage.tell(order, context);
  };
  await using shop = await stage.shop({ notify });
  const { orders, book } = shop;
  book.restock("lamp", 1);
  await orders.take([lamp("a")]);
  orders.start();
  await orders.idle();
  expect([stage.told, new Set(keys).size, keys.length]).toEqual([["a allocated"], 1, 2]);
});

it("has charged each order once, refunded or delivered what was charged, and lost none, whatever the service does", async () => {
  const random = seededRandom(7);
  const moods: readonly Behaviour[] = ["well", "well", "late", "lost", "busy", "declined"];
  const declined = new Set<string>();
  stage.server.behave = (key) => {
    const mood = moods[Math.floor(random() * moods.length)] ?? "well";
    const isNew = !stage.server.entries.some((entry) => entry.key === key);
    if (mood !== "declined") return declined.has(key) ? "declined" : mood;
    if (!isNew || key.startsWith("refund") || declined.has(key)) return declined.has(key) ? "declined" : "well";
    declined.add(key);
    return "declined";
  };
  await using shop = await stage.shop(IMPATIENT);
  const { orders, book } = shop;
  book.restock("lamp", 20);
  const ids = Array.from({ length: 60 }, (_, index) => `order-${index}`);
  await orders.take(ids.map(lamp));
  orders.start();
  await orders.idle();
  for (let redriven = 1; redriven > 0; await orders.idle()) redriven = await orders.redrive();
  const rows = ids.map((id) => book.get(id));
  for (const { id, state } of rows)
    expect([id, state, stage.server.balance(id)]).toEqual([id, state, state === "allocated" ? 1_250 : 0]);
  const keys = stage.server.entries.map(({ key }) => key);
  expect(new Set(keys).size).toBe(keys.length);
  expect(stage.told.toSorted()).toEqual(rows.map(({ id, state }) => `${id} ${state}`).toSorted());
  expect([declined.size > 0, book.stock("lamp")]).toEqual([true, 0]);
});
