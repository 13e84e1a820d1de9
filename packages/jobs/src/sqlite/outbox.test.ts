import { VirtualClock } from "sluice/testing";
import { expect, it } from "vitest";
import { Listeners } from "../listeners.ts";
import type { Link } from "./link.ts";
import type { Answer, Batch, Operation, Reply } from "./operation.ts";
import { Outbox } from "./outbox.ts";

/** A way to an engine that answers when it is told to, and counts. */
class Desk implements Link {
  readonly batches: Batch[] = [];
  readonly #replies: PromiseWithResolvers<Reply>[] = [];

  send(batch: Batch): Promise<Reply> {
    this.batches.push(structuredClone(batch));
    const reply = Promise.withResolvers<Reply>();
    this.#replies.push(reply);
    return reply.promise;
  }

  answer(answers: readonly Answer[], ready: readonly string[] = []): void {
    this.#replies.shift()?.resolve({ answers, ready: new Set(ready) });
  }

  break(error: Error): void {
    this.#replies.shift()?.reject(error);
  }

  async close(): Promise<void> {}
  async kill(): Promise<void> {}
}

const clock = new VirtualClock({ wallStartAt: 1_000 });
const ask = (queue: string): Extract<Operation, { kind: "stats" }> => ({ kind: "stats", queue });
const call = (input: unknown): Extract<Operation, { kind: "call" }> => ({ kind: "call", name: "x", input });

it("sends together what is asked in one turn, also after an await", async () => {
  const { desk, outbox } = open();
  void outbox.ask(ask("a"));
  await Promise.resolve();
  void outbox.ask(ask("b"));
  await turn();
  expect(desk.batches).toEqual([{ now: 1_000, operations: [ask("a"), ask("b")] }]);
});

it("has one batch under way, and sends together what is asked meanwhile", async () => {
  const { desk, outbox } = open();
  const first = outbox.ask(ask("a"));
  await turn();
  const second = outbox.ask(ask("b"));
  await turn();
  const third = outbox.ask(ask("c"));
  await turn();
  expect(desk.batches.length).toBe(1);
  desk.answer([{ value: "A" }]);
  expect(await first).toBe("A");
  const fourth = outbox.ask(ask("d")); // the answer leads to more, which catches the same batch
  await turn();
  expect(desk.batches.slice(1)).toEqual([{ now: 1_000, operations: [ask("b"), ask("c"), ask("d")] }]);
  desk.answer([{ value: "B" }, { value: "C" }, { value: "D" }]);
  expect(await Promise.all([second, third, fourth])).toEqual(["B", "C", "D"]);
  expect(outbox.stats()).toEqual({ waiting: 0, batches: 2, operations: 4 });
});

it("rejects each operation with its own failure", async () => {
  const { desk, outbox } = open();
  const both = Promise.allSettled([outbox.ask(ask("a")), outbox.ask(ask("b"))]);
  await turn();
  const failure = {
    name: "RangeError",
    message: "no",
    stack: "here",
    fields: { code: "X", left: 3 },
    cause: undefined,
  };
  desk.answer([{ failure }, { value: 2 }]);
  expect(await both).toEqual([
    { status: "rejected", reason: expect.objectContaining({ name: "RangeError", message: "no", code: "X", left: 3 }) },
    { status: "fulfilled", value: 2 },
  ]);
});

it("rejects all of a batch when the way is broken, and sends the next one nevertheless", async () => {
  const { desk, outbox } = open();
  const both = Promise.allSettled([outbox.ask(ask("a")), outbox.ask(ask("b"))]);
  await turn();
  const later = outbox.ask(ask("c"));
  const broken = new Error("gone");
  desk.break(broken);
  expect((await both).map((each) => each.status === "rejected" && each.reason)).toEqual([broken, broken]);
  await turn();
  desk.answer([{ value: 3 }]);
  expect(await later).toBe(3);
});

it("rejects an input that can't be copied, alone", async () => {
  const { desk, outbox } = open();
  const bad = outbox.ask(call(() => {}));
  const good = outbox.ask(call({ a: 1 }));
  const rejected = expect(bad).rejects.toThrow("could not be cloned");
  await turn();
  desk.answer([{ value: "good" }]);
  expect(await good).toBe("good");
  await rejected;
  expect(desk.batches).toEqual([{ now: 1_000, operations: [call({ a: 1 })] }]);
});

it("goes on after a batch of nothing that can be copied", async () => {
  const { desk, outbox } = open();
  await expect(outbox.ask(call(() => {}))).rejects.toThrow("could not be cloned");
  const good = outbox.ask(ask("a"));
  await turn();
  desk.answer([{ value: 1 }]);
  expect(await good).toBe(1);
});

it("tells once of each queue in which jobs may be ready, and only after the answers", async () => {
  const log: string[] = [];
  const { desk, outbox } = open((queue) => log.push(queue));
  const answered = outbox.ask(ask("a"));
  await turn();
  expect(log).toEqual([]);
  desk.answer([{ value: 1 }], ["a", "b"]);
  await answered;
  await outbox.idle();
  expect(log).toEqual(["a", "b"]);
});

it("lets virtual time stand still from the question to the last answer", async () => {
  const own = new VirtualClock();
  const { desk, outbox } = open(undefined, own);
  let passed = false;
  const first = outbox.ask(ask("a"));
  const advanced = own.advance(50).then(() => (passed = true));
  await turn();
  const second = outbox.ask(ask("b"));
  desk.answer([{ value: 1 }]);
  await first;
  await turn();
  expect([passed, own.now()]).toEqual([false, 0]);
  desk.answer([{ value: 2 }]);
  await second;
  await advanced;
  expect(own.now()).toBe(50);
});

it("is idle when nothing was asked, and when all is answered", async () => {
  const { desk, outbox } = open();
  await outbox.idle();
  const asked = outbox.ask(ask("a"));
  await turn();
  desk.answer([{ value: 1 }]);
  await outbox.idle();
  expect(await asked).toBe(1);
});

function open(listener?: (queue: string) => void, time = clock): { readonly desk: Desk; readonly outbox: Outbox } {
  const desk = new Desk();
  const listeners = new Listeners();
  if (listener !== undefined) listeners.add(listener);
  return { desk, outbox: new Outbox(desk, time, listeners) };
}

/** The turn after the one in which batches go out. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}
