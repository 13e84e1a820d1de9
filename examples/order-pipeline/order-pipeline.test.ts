import { afterEach, beforeEach, expect, it } from "vitest";
import { IMPATIENT, lamp, Stage, times } from "./order-pipeline.stage.ts";

let stage: Stage;

beforeEach(async () => {
  stage = await Stage.open();
});
afterEach(() => stage.close());

it("charges, takes the goods and tells the customer", async () => {
  await using shop = await stage.shop();
  const { orders, book } = shop;
  book.restock("lamp", 3);
  expect(await orders.take([lamp("a"), lamp("b")])).toEqual({ accepted: 2, known: 0, refused: 0 });
  orders.start();
  await orders.idle();
  expect(book.states()).toEqual({ allocated: 2 });
  expect([stage.server.balance("a"), stage.server.balance("b"), book.stock("lamp")]).toEqual([1_250, 1_250, 1]);
  expect(stage.told.toSorted()).toEqual(["a allocated", "b allocated"]);
});

it.each(["late", "lost"] as const)("charges once when the answer of the first charge is %s", async (behaviour) => {
  stage.server.behave = times(1, behaviour);
  await using shop = await stage.shop(IMPATIENT);
  const { orders, book } = shop;
  book.restock("lamp", 1);
  await orders.take([lamp("a")]);
  orders.start();
  await orders.idle();
  expect(stage.server.requests.length).toBeGreaterThan(1);
  expect([stage.server.entries, book.states()]).toEqual([[{ key: "charge-a", cents: 1_250 }], { allocated: 1 }]);
});

it.each(["well", "late", "lost"] as const)(
  "refunds once what can't be delivered, if the answer is %s",
  async (behaviour) => {
    stage.server.behave = times(1, behaviour, "refund");
    await using shop = await stage.shop(IMPATIENT);
    const { orders, book } = shop;
    book.restock("lamp", 1);
    await orders.take([{ ...lamp("a"), quantity: 2 }]);
    orders.start();
    await orders.idle();
    expect(stage.server.entries).toEqual([
      { key: "charge-a", cents: 1_250 },
      { key: "refund-a", cents: -1_250 },
    ]);
    expect([book.states(), book.stock("lamp"), stage.told]).toEqual([{ refunded: 1 }, 1, ["a refunded"]]);
  },
);

it("takes no goods for a card that was declined, and tells the customer", async () => {
  stage.server.behave = () => "declined";
  await using shop = await stage.shop();
  const { orders, book } = shop;
  book.restock("lamp", 1);
  await orders.take([lamp("a")]);
  orders.start();
  await orders.idle();
  expect([book.states(), book.stock("lamp"), stage.told]).toEqual([{ declined: 1 }, 1, ["a declined"]]);
  expect([stage.server.requests, await orders.deadLetters()]).toEqual([["charge-a"], []]);
});

it("takes a refund that was declined for none, and says so", async () => {
  stage.server.behave = (key) => (key === "refund-a" ? "declined" : "well");
  await using shop = await stage.shop();
  const { orders, book } = shop;
  await orders.take([lamp("a")]);
  orders.start();
  await orders.idle();
  expect([book.states(), stage.told]).toEqual([{ unallocated: 1 }, []]);
  expect(await orders.deadLetters()).toMatchObject([{ queue: "refund", payload: { order: "a" } }]);
});

it("sets aside what is no order, and an order whose id is another's, and goes on with the rest", async () => {
  await using shop = await stage.shop();
  const { orders, book } = shop;
  const strange = [null, { ...lamp("b"), quantity: 0 }, { ...lamp("c"), id: "a\nb" }, { ...lamp("a"), cents: 1 }];
  book.restock("lamp", 1);
  expect(await orders.take([lamp("a"), ...strange, lamp("a")])).toEqual({ accepted: 1, known: 1, refused: 4 });
  expect(
    book
      .refused()
      .map(({ reason }) => reason)
      .toSorted(),
  ).toEqual(["its id is taken by another order", "no id", "no id", "no quantity"]);
  orders.start();
  await orders.idle();
  expect(stage.server.entries).toEqual([{ key: "charge-a", cents: 1_250 }]);
});
