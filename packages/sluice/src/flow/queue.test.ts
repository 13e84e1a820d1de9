import { AsyncLocalStorage } from "node:async_hooks";
import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { ClosedError, QueueFullError, TimeoutError } from "../errors.ts";
import { namedEntries } from "../internal/names.ts";
import { type AbortSubject, abortCases } from "../testing/abort-suite.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Queue } from "./queue.ts";

const subjects: readonly AbortSubject[] = [
  {
    name: "Queue.put",
    open(clock) {
      const queue = new Queue<number>(1, { clock });
      queue.offer(0);
      return {
        call: (options) => queue.put(1, options),
        satisfy: () => queue.poll(),
        state: () => ({ size: queue.size, waiting: queue.stats().waitingProducers }),
        giveBack: () => queue.poll(),
      };
    },
  },
  ...(["take", "takeBatch"] as const).map((verb) => ({
    name: `Queue.${verb}`,
    open(clock: VirtualClock) {
      const queue = new Queue<number>(10_000, { clock });
      return {
        call: (options: object) => (verb === "take" ? queue.take(options) : queue.takeBatch(3, options)),
        satisfy: () => queue.offer(1),
        state: () => ({ size: queue.size, waiting: queue.stats().waitingConsumers }),
        giveBack: () => queue.offer(1),
      };
    },
  })),
];

for (const subject of subjects) for (const { title, run } of abortCases(subject)) it(title, run);

it("holds no more than its capacity, and admits a waiting producer for each item that leaves", async () => {
  const queue = new Queue<string>(2);
  const puts = ["a", "b", "c", "d"].map((item) => queue.put(item));
  expect([queue.size, queue.stats().waitingProducers, queue.offer("e")]).toEqual([2, 2, false]);
  expect([queue.poll(), queue.size, queue.stats().waitingProducers]).toEqual(["a", 2, 1]);
  expect(await Promise.all(puts.slice(0, 3))).toEqual([true, true, true]);
  expect([queue.pollBatch(9), queue.poll(), queue.size]).toEqual([["b", "c", "d"], undefined, 0]);
  expect(await puts[3]).toBe(true);
});

it("hands an item to the consumer that waits longest, past every newcomer", async () => {
  const queue = new Queue<number>(3);
  const takes = [queue.take(), queue.take()];
  queue.offer(1);
  expect([queue.poll(), queue.size]).toEqual([undefined, 0]);
  const late = queue.take();
  queue.offer(2);
  queue.offer(3);
  expect(await Promise.all([...takes, late])).toEqual([1, 2, 3]);
});

it("rejects a put at once when whenFull is reject", async () => {
  const queue = new Queue<number>(1, { whenFull: "reject" });
  await queue.put(1);
  await expect(queue.put(2)).rejects.toThrow(QueueFullError);
  await expect(queue.put(2)).rejects.toMatchObject({ code: "QUEUE_FULL", limit: 1 });
  expect([queue.offer(2), queue.stats().rejected, queue.size]).toEqual([false, 3, 1]);
});

it("carries undefined as an item", async () => {
  const queue = new Queue<undefined>(1);
  await queue.put(undefined);
  const waiting = queue.put(undefined);
  expect([queue.size, queue.poll(), await waiting, queue.size]).toEqual([1, undefined, true, 1]);
  expect(await queue.take()).toBe(undefined);
  expect(queue.size).toBe(0);
});

it("settles put and take in the same number of turns whether or not they waited", async () => {
  const [free, full] = [new Queue<number>(1), new Queue<number>(1)];
  const log: string[] = [];
  const note = (what: string) => (): unknown => log.push(what);
  full.offer(1);
  const puts = [full.put(2).then(note("waited to put")), (full.poll(), free.put(1).then(note("put")))];
  await Promise.all(puts);
  full.poll();
  const takes = [full.take().then(note("waited to take")), (full.offer(3), free.take().then(note("took")))];
  await Promise.all(takes);
  expect(log).toEqual(["waited to put", "put", "waited to take", "took"]);
});

it("takes a batch of what is there, the items of waiting producers included, past its capacity", async () => {
  const queue = new Queue<number>(2);
  for (let item = 0; item < 5; item += 1) void queue.put(item);
  expect([await queue.takeBatch(4), await queue.takeBatch(4), queue.size]).toEqual([[0, 1, 2, 3], [4], 0]);
});

it("gives a batch maxWaitMs from its first item to fill, and no longer", async () => {
  const clock = new VirtualClock();
  const queue = new Queue<number>(10, { clock });
  const batch = queue.takeBatch(3, { maxWaitMs: 100 });
  await clock.advance(500); // waiting for the first costs nothing of it
  queue.offer(1);
  await clock.advance(60);
  queue.offer(2);
  await clock.advance(39);
  expect(queue.stats().waitingConsumers).toBe(1);
  await clock.advance(1);
  expect([await batch, clock.timers, queue.stats().waitingConsumers]).toEqual([[1, 2], 0, 0]);
});

it("ends a batch the moment it is full", async () => {
  const clock = new VirtualClock();
  const queue = new Queue<number>(10, { clock });
  const batch = queue.takeBatch(3, { maxWaitMs: Infinity });
  for (let item = 1; item <= 4; item += 1) queue.offer(item);
  expect([await batch, queue.size, clock.timers]).toEqual([[1, 2, 3], 1, 0]);
});

it("gives what a batch has already when its signal aborts or its queue ends, and leaves nobody in line", async () => {
  for (const end of ["abort", "close", "fail"] as const) {
    const clock = new VirtualClock();
    const queue = new Queue<number>(10, { clock });
    const call = new AbortController();
    const batch = queue.takeBatch(3, { maxWaitMs: 100, timeoutMs: 50, signal: call.signal });
    queue.offer(1);
    await clock.advance(60); // timeoutMs is about the first
    if (end === "abort") call.abort();
    else if (end === "close") queue.close();
    else queue.fail(new Error("gone"));
    expect([await batch, clock.timers, queue.stats().waitingConsumers]).toEqual([[1], 0, 0]);
    expect(getEventListeners(call.signal, "abort")).toHaveLength(0);
  }
});

it("iterates until it is closed and empty", async () => {
  const queue = new Queue<number>(2);
  const items: number[] = [];
  const consumer = (async () => {
    for await (const item of queue) items.push(item);
  })();
  for (let item = 0; item < 5; item += 1) await queue.put(item);
  queue.close();
  await consumer;
  expect(items).toEqual([0, 1, 2, 3, 4]);
});

it("ends iteration without an item for whoever waits when it is closed, and with the error when it fails", async () => {
  const [closed, failed] = [new Queue<number>(1), new Queue<number>(1)];
  const outcomes = Promise.allSettled([count(closed), count(failed)]);
  await turn();
  closed.close();
  closed.fail(new Error("too late for whoever has seen the end"));
  const failure = new ClosedError("source"); // of somebody else: no end of this queue
  failed.fail(failure);
  expect(await outcomes).toEqual([
    { status: "fulfilled", value: 0 },
    { status: "rejected", reason: failure },
  ]);
});

async function count(items: AsyncIterable<unknown>): Promise<number> {
  let total = 0;
  for await (const _ of items) total += 1;
  return total;
}

it("leaves no waiter and loses no item when iteration is broken off", async () => {
  const queue = new Queue<number>(3);
  for (const item of [1, 2, 3]) queue.offer(item);
  for await (const item of queue[Symbol.asyncIterator]()) if (item === 2) break;
  const failing = (async () => {
    for await (const item of queue) throw new Error(`no ${item}`);
  })();
  await expect(failing).rejects.toThrow("no 3");
  const iterator = queue[Symbol.asyncIterator]();
  const next = iterator.next();
  await iterator.return?.();
  queue.offer(4);
  expect([await next, await iterator.next()]).toEqual([
    { done: true, value: undefined },
    { done: true, value: undefined },
  ]);
  expect([queue.poll(), queue.stats().waitingConsumers]).toEqual([4, 0]);
});

it("gives the error of fail to all at once, and what nobody took to poll", async () => {
  const queue = new Queue<number>(2);
  const puts = Promise.allSettled([queue.put(1), queue.put(2), queue.put(3)]);
  const failure = new Error("consumer gone");
  queue.fail(failure);
  queue.fail(new Error("second"));
  queue.close();
  expect((await puts).map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected"]);
  await expect(queue.put(4)).rejects.toBe(failure);
  await expect(queue.take()).rejects.toBe(failure);
  await expect(queue.takeBatch(2)).rejects.toBe(failure);
  expect([queue.offer(5), queue.closed, queue.pollBatch(9), queue.poll()]).toEqual([false, true, [1, 2], undefined]);
});

it("rejects instead of throwing, and says what is wrong with an option", async () => {
  expect(() => new Queue(-1)).toThrow("capacity must be an integer >= 0, got -1");
  expect(() => new Queue(Infinity)).toThrow(RangeError);
  expect(() => new Queue(1, { whenFull: "drop" as "wait" })).toThrow(
    "whenFull must be one of wait, reject, drop-newest, drop-oldest, got drop",
  );
  const queue = new Queue<number>(1);
  queue.offer(1);
  for (const max of [0, -1, 1.5, Number.NaN]) {
    await expect(queue.takeBatch(max)).rejects.toThrow(RangeError);
    expect(() => queue.pollBatch(max)).toThrow(RangeError);
  }
  await expect(queue.takeBatch(1, { maxWaitMs: -1 })).rejects.toThrow("maxWaitMs must be >= 0, got -1");
  expect(queue.size).toBe(1);
});

it("counts a batch that has waited maxWaitMs as no timeout, but each call that got nothing by the reason", async () => {
  const clock = new VirtualClock();
  const queue = new Queue<number>(1, { clock });
  const calls = [queue.takeBatch(2, { maxWaitMs: 10 }), queue.take({ timeoutMs: 20 }), queue.take({ timeoutMs: 0 })];
  const ended = Promise.allSettled(calls);
  queue.offer(1);
  await clock.advance(20);
  expect((await ended).map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected"]);
  expect(queue.stats()).toMatchObject({ timedOut: 2, rejected: 0, accepted: 1 });
  queue.offer(2);
  const puts = [queue.put(3, { timeoutMs: 0 }), queue.put(4)];
  queue.close();
  puts.push(queue.put(5));
  const codes = (await Promise.allSettled(puts)).map((each) => each.status === "rejected" && each.reason.code);
  expect([codes, queue.offer(6)]).toEqual([["TIMEOUT", "CLOSED", "CLOSED"], false]);
  expect(queue.stats()).toMatchObject({ timedOut: 3, rejected: 3, accepted: 2 });
});

it.each([new TimeoutError(5), undefined])(
  "takes no other end of a batch for its maxWaitMs, be it the reason %s of an abort or a failure",
  async (reason) => {
    const clock = new VirtualClock();
    for (const end of ["abort", "fail"] as const) {
      const queue = new Queue<number>(1, { clock });
      const call = new AbortController();
      queue.offer(1);
      const batch = queue.takeBatch(2, { maxWaitMs: 10, signal: call.signal });
      await clock.advance(1);
      if (end === "abort") call.abort(reason);
      else queue.fail(reason);
      expect(await batch).toEqual([1]);
      expect(queue.stats().timedOut).toBe(0);
    }
  },
);

it("tells depth, age and counts by name", async () => {
  const clock = new VirtualClock();
  const queue = new Queue<number>(2, { name: "orders", clock });
  for (let item = 0; item < 4; item += 1) void queue.put(item, { timeoutMs: 50 }).catch(() => {});
  await clock.advance(30);
  expect(queue.poll()).toBe(0);
  expect(queue.stats()).toEqual({
    size: 2,
    capacity: 2,
    reserved: 0,
    oldestAgeMs: 30,
    accepted: 3,
    taken: 1,
    acceptedPerSecond: 100,
    takenPerSecond: 100 / 3,
    rejected: 0,
    dropped: 0,
    undelivered: 0,
    waitingProducers: 1,
    waitingConsumers: 0,
    consumers: 0,
    timedOut: 0,
    aborted: 0,
    closed: false,
  });
  await clock.advance(20);
  queue.pollBatch(2);
  expect(queue.stats()).toMatchObject({ size: 0, oldestAgeMs: 0, taken: 3, timedOut: 1, waitingProducers: 0 });
  const entry = namedEntries().find(({ name }) => name === "orders");
  expect([entry?.kind, entry?.target.deref()]).toEqual(["queue", queue]);
});

it("C028: closing loses no accepted item, and tells each waiting producer", async () => {
  const queue = new Queue<number>(2);
  const puts = Promise.allSettled([1, 2, 3, 4].map((item) => queue.put(item)));
  queue.close();
  const got: number[] = [];
  for await (const item of queue) got.push(item);
  expect(got).toEqual([1, 2]);
  const outcomes = (await puts).map((put) => (put.status === "fulfilled" ? put.value : put.reason.code));
  expect(outcomes).toEqual([true, true, "CLOSED", "CLOSED"]);
  await expect(queue.take()).rejects.toThrow(ClosedError);
  await expect(queue.put(5)).rejects.toThrow(ClosedError);
});

it("C036: 200 000 items, waiting producers or waiting consumers pass within the limit for a test", async () => {
  const many = 200_000;
  const [deep, shallow, empty] = [new Queue<number>(many), new Queue<number>(1), new Queue<number>(1)];
  let last: unknown;
  for (let item = 0; item < many; item += 1) {
    deep.offer(item);
    void shallow.put(item);
    last = empty.take();
  }
  for (let item = 0; item < many; item += 1) {
    if (deep.poll() !== item || shallow.poll() !== item || !empty.offer(item)) expect.fail(`lost ${item}`);
  }
  expect([await last, deep.size, shallow.size, empty.size]).toEqual([many - 1, 0, 0, 0]);
}, 10_000);

it("C042: whoever waits resumes in an async context of its own, not in that of the other side", async () => {
  const queue = new Queue<string>(1);
  const context = new AsyncLocalStorage<string>();
  const taken = context.run("consumer", async () => [await queue.take(), context.getStore()]);
  context.run("producer", () => queue.offer("item"));
  expect(await taken).toEqual(["item", "consumer"]);
});
