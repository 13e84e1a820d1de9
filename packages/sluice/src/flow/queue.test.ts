import { AsyncLocalStorage } from "node:async_hooks";
import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { ClosedError, TimeoutError } from "../errors.ts";
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
  await expect(queue.consume(() => {}, { stop: 5 as never })).rejects.toThrow(
    "stop must be an AbortSignal, got number",
  );
  const toNobody = queue.consume(() => {}, { onLateError: 5 as never });
  await expect(toNobody).rejects.toThrow("onLateError must be a function, got number");
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
      expect(queue.stats()).toMatchObject({ timedOut: 0, aborted: 0 });
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
});

it("C042: whoever waits resumes in an async context of its own, not in that of the other side", async () => {
  const queue = new Queue<string>(1);
  const context = new AsyncLocalStorage<string>();
  const taken = context.run("consumer", async () => [await queue.take(), context.getStore()]);
  context.run("producer", () => queue.offer("item"));
  expect(await taken).toEqual(["item", "consumer"]);
});

it("reads the clock for one item of 16 and where a backlog begins, and tells no age too high, unless it has a name", () => {
  const clock = new VirtualClock();
  let [now, readings] = [0, 0];
  const counting = { now: () => ((readings += 1), now), wallNow: () => 0 };
  const options = { clock: { ...counting, setTimer: clock.setTimer.bind(clock), track: clock.track.bind(clock) } };
  const [rough, exact] = [new Queue<number>(1_024, options), new Queue<number>(1_024, { ...options, name: "exact" })];
  for (const [queue, most] of [
    [rough, 66],
    [exact, 1_000],
  ] as const) {
    readings = 0;
    for (now = 0; now < 1_000; now += 1) queue.offer(now);
    expect(readings).toBeLessThanOrEqual(most);
  }
  for (let taken = 0; taken < 1_000; taken += 1) {
    const age = now - taken;
    expect(exact.oldestAgeMs).toBe(age);
    expect(rough.oldestAgeMs).toBeLessThanOrEqual(age);
    expect(rough.oldestAgeMs).toBeGreaterThan(Math.min(now, age - 16) - 1);
    for (const queue of [rough, exact]) queue.poll();
  }
  expect([rough.oldestAgeMs, exact.oldestAgeMs]).toEqual([0, 0]);
});

it("reads the clock for no item that is taken before the next one comes", () => {
  const clock = new VirtualClock();
  let readings = 0;
  const now = (): number => (readings += 1);
  const queue = new Queue<number>(1_024, {
    clock: { now, wallNow: now, setTimer: clock.setTimer.bind(clock), track: clock.track.bind(clock) },
  });
  readings = 0;
  for (let item = 0; item < 1_600; item += 1) queue.offer(queue.poll() ?? item);
  expect(readings).toBeLessThanOrEqual(100);
});

it("tells the age of an item that is alone and has no stamp from when somebody looked first", async () => {
  const clock = new VirtualClock();
  const queue = new Queue<number>(1_024, { clock });
  queue.offer(1);
  await clock.advance(50);
  expect(queue.oldestAgeMs).toBe(0);
  await clock.advance(50);
  expect(queue.stats().oldestAgeMs).toBe(50);
  queue.offer(2);
  queue.poll();
  await clock.advance(7);
  expect(queue.oldestAgeMs).toBe(7);
});

it("tells rates since a look that is a second old at least, whoever looks more often", async () => {
  const clock = new VirtualClock();
  const queue = new Queue<number>(100, { clock });
  expect(queue.stats()).toMatchObject({ acceptedPerSecond: 0, takenPerSecond: 0 });
  for (let second = 0; second < 3; second += 1) {
    for (let item = 0; item < 10; item += 1) queue.offer(item);
    queue.pollBatch(4);
    await clock.advance(900);
    queue.stats();
    await clock.advance(100);
    expect(queue.stats()).toMatchObject({ acceptedPerSecond: 10, takenPerSecond: 4 });
  }
  await clock.advance(10_000);
  queue.stats();
  await clock.advance(1_000);
  expect(queue.stats()).toMatchObject({ acceptedPerSecond: 0, takenPerSecond: 0 });
});

it("lets onUndelivered throw: the caller is not harmed, and the error is an unhandled rejection", async () => {
  const failure = new Error("no cleaning up");
  const others = process.listeners("unhandledRejection");
  const seen: unknown[] = [];
  process.removeAllListeners("unhandledRejection").on("unhandledRejection", (error) => seen.push(error));
  try {
    const queue = new Queue<number>(1, {
      whenFull: "drop-oldest",
      onUndelivered() {
        throw failure;
      },
    });
    expect([await queue.put(1), await queue.put(2), queue.size]).toEqual([true, true, 1]);
    queue.fail("end");
    await turn();
    expect([seen, queue.size, queue.stats().undelivered]).toEqual([[failure, failure], 0, 2]);
  } finally {
    process.removeAllListeners("unhandledRejection");
    for (const other of others) process.on("unhandledRejection", other);
  }
});

it("grants nothing to whose signal has aborted, though it has yet to hear of it", async () => {
  const [call, full, empty] = [new AbortController(), new Queue<string>(1), new Queue<string>(1)];
  const { signal } = call;
  full.offer("in");
  signal.addEventListener("abort", () => {
    full.poll();
    empty.offer("item");
  });
  const outcomes = Promise.allSettled([full.put("mine", { signal }), empty.take({ signal })]);
  call.abort("no");
  expect((await outcomes).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect([full.size, empty.poll()]).toEqual([0, "item"]);
});

it("ends every next of an iterator that is left, also when several wait", async () => {
  const queue = new Queue<number>(1);
  const iterator = queue[Symbol.asyncIterator]();
  const nexts = [iterator.next(), iterator.next(), iterator.next()];
  queue.offer(1);
  await iterator.return?.();
  const end = { done: true, value: undefined };
  expect(await Promise.all(nexts)).toEqual([{ done: false, value: 1 }, end, end]);
  expect(queue.stats().waitingConsumers).toBe(0);
});

it("settles next of its iterator in the same number of turns whether or not it waited", async () => {
  const [there, later] = [new Queue<number>(1), new Queue<number>(1)];
  there.offer(1);
  const log: string[] = [];
  const waited = later[Symbol.asyncIterator]()
    .next()
    .then(() => log.push("waited"));
  const atOnce =
    (later.offer(1),
    there[Symbol.asyncIterator]()
      .next()
      .then(() => log.push("at once")));
  await Promise.all([waited, atOnce]);
  expect(log).toEqual(["waited", "at once"]);
});

it("reads from any source and into any stream that knows async iteration", async () => {
  const queue = new Queue<number>(2);
  const source = new ReadableStream<number>({
    start(controller) {
      for (const item of [1, 2, 3, 4]) controller.enqueue(item);
      controller.close();
    },
  });
  const written: number[] = [];
  const pump = (async () => {
    for await (const item of source) await queue.put(item);
    queue.close();
  })();
  await (ReadableStream as unknown as { from(items: AsyncIterable<number>): ReadableStream<number> })
    .from(queue)
    .pipeTo(new WritableStream({ write: (item) => void written.push(item) }));
  await pump;
  expect(written).toEqual([1, 2, 3, 4]);
});
