import { AsyncLocalStorage } from "node:async_hooks";
import { expect, it, vi } from "vitest";
import { ClosedError, QueueFullError } from "../errors.ts";
import { namedEntries } from "../internal/names.ts";
import { abortCases, type AbortSubject } from "../testing/abort-suite.ts";
import { turn } from "../testing/turn.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { BatchLine, type BatchLineOptions } from "./batch-line.ts";
import type { BatchContext, BatcherOptions } from "./batch-options.ts";
import { batch, type Batcher } from "./batch.ts";
import { loadMany } from "./load-many.ts";

const waiting: AbortSubject = {
  name: "Batcher.load in a line",
  lacks: { timeoutMs: "a signal with a deadline is one" },
  open(clock) {
    const line = new BatchLine({ windowMs: 1_000, clock });
    const batcher = batch<string, string>((keys) => keys, { line });
    return {
      call: (options) => batcher.load("key", options),
      satisfy: () => clock.advance(1_000),
      state: () => ({ waiting: line.stats().waitingKeys }),
    };
  },
};

const closing: AbortSubject = {
  name: "BatchLine.close",
  lacks: { timeoutMs: "a signal with a deadline is one" },
  open() {
    const line = new BatchLine();
    const hold = Promise.withResolvers<void>();
    const batcher = batch<string, string>((keys) => hold.promise.then(() => keys), { line });
    batcher.load("key").catch(() => {});
    return {
      call: (options) => line.close(options),
      satisfy: () => hold.resolve(),
      state: () => ({}),
    };
  },
};

for (const { title, run } of abortCases(waiting)) it(title, run);
// An abort ends what it waits for, so that a second one has nothing to wait for: that has a test of its own.
for (const { title, run } of abortCases(closing)) if (!title.includes("mid-wait")) it(title, run);

it("waits for more keys for windowMs from the first on, then sends at the end of that turn", async () => {
  const { clock, batcher, calls } = stage({ windowMs: 100 });
  const answers = [batcher.load(1)];
  await clock.advance(60);
  answers.push(batcher.load(2));
  await clock.advance(39);
  expect(calls).toHaveLength(0);
  await clock.advance(1);
  expect(calls.map(({ keys }) => keys)).toEqual([[1, 2]]);
  calls[0]?.answer();
  expect(await Promise.all(answers)).toEqual([1, 2]);
});

it("sends what is full at once, and leaves no timer behind", async () => {
  const { clock, batcher, calls } = stage({ windowMs: 100 }, { maxSize: 2 });
  const answers = [1, 2, 3].map((key) => batcher.load(key));
  await turn();
  expect([calls.map(({ keys }) => keys), clock.timers]).toEqual([[[1, 2]], 1]);
  await clock.advance(100);
  for (const { answer } of calls) answer();
  expect(await Promise.all(answers)).toEqual([1, 2, 3]);
});

it("has no more calls under way than maxParallel; meanwhile what waits goes on filling", async () => {
  const { batcher, calls, line } = stage({ maxParallel: 1 }, { maxSize: 3 });
  const answers = [batcher.load(1)];
  await turn();
  for (const key of [2, 3, 4, 5]) {
    answers.push(batcher.load(key));
    await turn();
  }
  expect(calls.map(({ keys }) => keys)).toEqual([[1]]);
  expect(line.stats()).toMatchObject({ waiting: 2, waitingKeys: 4, running: 1 });
  for (let i = 0; i < 3; i += 1) {
    calls[i]?.answer();
    await turn();
  }
  expect(await Promise.all(answers)).toEqual([1, 2, 3, 4, 5]);
  expect(calls.map(({ keys }) => keys)).toEqual([[1], [2, 3, 4], [5]]);
});

it("has no place for a batch that all have left, which another would need", async () => {
  const { line, batcher, calls } = stage({ maxParallel: 1, maxWaiting: 1 }, { maxSize: 1 });
  const first = batcher.load(1);
  await turn();
  const call = new AbortController();
  const left = expect(batcher.load(2, call)).rejects.toBe("left");
  call.abort("left");
  await left;
  expect(line.stats()).toMatchObject({ waiting: 0, waitingKeys: 0, running: 1 });
  const next = batcher.load(3);
  calls[0]?.answer();
  expect(await first).toBe(1);
  await turn();
  calls[1]?.answer();
  expect([await next, calls.map(({ keys }) => keys)]).toEqual([3, [[1], [3]]]);
});

it("keeps the slot of a call that all have left until it has really ended", async () => {
  const { batcher, calls } = stage({ maxParallel: 1 });
  const call = new AbortController();
  const left = expect(batcher.load(1, call)).rejects.toBe("left");
  await turn();
  call.abort("left");
  await left;
  const next = batcher.load(2);
  await turn();
  expect([calls.length, calls[0]?.signal.aborted]).toEqual([1, true]);
  calls[0]?.answer();
  await turn();
  calls[1]?.answer();
  await expect(next).resolves.toBe(2);
});

it("turns away the key that needs another batch than may wait, and loses none of the others", async () => {
  const { batcher, calls, line } = stage({ maxParallel: 1, maxWaiting: 1 }, { maxSize: 2 });
  const answers = [1, 2].map((key) => batcher.load(key));
  await turn();
  answers.push(...[3, 4].map((key) => batcher.load(key)));
  const refused = await batcher.load(5).catch((error: unknown) => error);
  expect([refused, line.stats().rejected]).toEqual([new QueueFullError(1), 1]);
  calls[0]?.answer();
  await turn();
  answers.push(batcher.load(5));
  calls[1]?.answer();
  await turn();
  calls[2]?.answer();
  expect(await Promise.all(answers)).toEqual([1, 2, 3, 4, 5]);
});

it("serves several batchers in the order in which their batches began", async () => {
  const { batcher, calls, line } = stage({ maxParallel: 1 });
  const order: string[] = [];
  const other = batch<string, string>(
    (keys) => {
      order.push(...keys);
      return keys;
    },
    { line },
  );
  const all = [batcher.load(1), other.load("a")];
  await turn();
  expect(order).toEqual([]);
  calls[0]?.answer();
  expect(await Promise.all(all)).toEqual([1, "a"]);
});

it("flushes what waits for its window", async () => {
  const { clock, batcher, calls, line } = stage({ windowMs: 1_000 });
  const answer = batcher.load(1);
  line.flush();
  await turn();
  expect([calls.length, clock.timers]).toEqual([1, 0]);
  calls[0]?.answer();
  await expect(answer).resolves.toBe(1);
});

it("C064: close reports what was not flushed, and each of it rejects", async () => {
  const { batcher, calls, line } = stage({ windowMs: 1_000 });
  const answers = loadMany(batcher, [1, 2, 3]);
  const report = line.close();
  await turn();
  calls[0]?.fail("disk full");
  expect(await report).toEqual([1, 2, 3]);
  expect(await answers).toMatchObject([{ reason: "disk full" }, { reason: "disk full" }, { reason: "disk full" }]);
  expect(line.stats()).toMatchObject({ closed: true, waiting: 0, running: 0 });
});

it("C064: a close that may take no longer rejects, so does what has no answer, and the next close tells its keys", async () => {
  const { batcher, calls, line } = stage({ maxParallel: 1 }, { maxSize: 2 });
  const answers = loadMany(batcher, [1, 2, 3]);
  await turn();
  const stop = new AbortController();
  const closed = expect(line.close({ signal: stop.signal })).rejects.toBe("200 ms are over");
  await turn();
  stop.abort("200 ms are over");
  await closed;
  expect(calls[0]?.signal.reason).toBeInstanceOf(ClosedError);
  for (const result of await answers) expect(result).toMatchObject({ reason: { code: "CLOSED" } });
  expect(await line.close()).toEqual([1, 2, 3]);
  calls[0]?.answer(); // too late
  await turn();
  expect([calls.length, line.stats()]).toMatchObject([1, { waiting: 0, running: 0 }]);
});

it("takes nothing more once it is closed, and reports nothing if all went well", async () => {
  const { batcher, calls, line } = stage({ windowMs: 1_000 });
  const answer = batcher.load(1);
  const report = line.close();
  await turn();
  calls[0]?.answer();
  expect([await report, await answer, await line.close()]).toEqual([[], 1, []]);
  await expect(batcher.load(2)).rejects.toBeInstanceOf(ClosedError);
});

it("rejects a close whose options it can't use, and goes on", async () => {
  const { batcher, calls, line } = stage({ windowMs: 0 });
  const broken = {
    get signal(): AbortSignal {
      throw new Error("no signal");
    },
  };
  await expect(line.close(broken)).rejects.toThrow("no signal");
  await expect(line.close(null as never)).rejects.toThrow(TypeError);
  const answer = batcher.load(1);
  await turn();
  calls[0]?.answer();
  await expect(answer).resolves.toBe(1);
});

it("reports no key that was given up", async () => {
  const { batcher, calls, line } = stage({ windowMs: 1_000 });
  const call = new AbortController();
  const left = Promise.allSettled([batcher.load(1, call), batcher.load(2)]);
  const report = line.close();
  await turn();
  call.abort("left");
  calls[0]?.fail("broken");
  expect(await report).toEqual([2]);
  await left;
});

it("calls the batch function in the context of who made the line, whoever's turn or timer it is", async () => {
  const context = new AsyncLocalStorage<string>();
  const clock = new VirtualClock();
  const seen: (string | undefined)[] = [];
  const line = context.run("maker", () => new BatchLine({ windowMs: 10, maxParallel: 1, clock }));
  const batcher = batch<number, number>(
    (keys) => {
      seen.push(context.getStore());
      return keys;
    },
    { line, maxSize: 1 },
  );
  const all = [1, 2].map((key) => context.run("caller", () => batcher.load(key)));
  all.push(context.run("caller", () => batcher.load(3)));
  await context.run("time", () => clock.advance(10));
  await Promise.all(all);
  expect(seen).toEqual(["maker", "maker", "maker"]);
});

it("loses nothing when the clock throws", async () => {
  const clock = new VirtualClock();
  const { batcher, line, calls } = stage({ windowMs: 10, clock });
  const setTimer = vi.spyOn(clock, "setTimer").mockImplementation(() => {
    throw new Error("no timers left");
  });
  await expect(batcher.load(1)).rejects.toThrow("no timers left");
  expect(line.stats().waiting).toBe(0);
  setTimer.mockRestore();
  const next = batcher.load(1);
  await clock.advance(10);
  calls[0]?.answer();
  await expect(next).resolves.toBe(1);
});

it("tells depth and age by name, and refuses what it can't use", async () => {
  const { clock, batcher, line } = stage({ windowMs: 1_000, name: "rows" });
  void batcher.load(1);
  await clock.advance(30);
  void batcher.load(2);
  const stats = { waiting: 1, waitingKeys: 2, oldestWaitMs: 30, running: 0, rejected: 0, closed: false };
  expect(line.stats()).toEqual(stats);
  expect(
    namedEntries()
      .find(({ name }) => name === "rows")
      ?.target.deref(),
  ).toBe(line);
  for (const bad of [{ windowMs: -1 }, { windowMs: Infinity }, { maxParallel: 0 }, { maxWaiting: 0.5 }])
    expect(() => new BatchLine(bad)).toThrow(RangeError);
});

interface Call extends BatchContext {
  readonly keys: readonly number[];
  readonly answer: () => void;
  readonly fail: (reason: unknown) => void;
}

/** Calls that are answered, with the keys as values, when they are told to. */
function stage(
  lineOptions: BatchLineOptions,
  options?: BatcherOptions<number, number>,
): {
  readonly clock: VirtualClock;
  readonly line: BatchLine;
  readonly batcher: Batcher<number, number>;
  readonly calls: Call[];
} {
  const clock = new VirtualClock();
  const line = new BatchLine({ clock, ...lineOptions });
  const calls: Call[] = [];
  const fn = (keys: readonly number[], { signal }: BatchContext): Promise<readonly number[]> =>
    new Promise((resolve, fail) => void calls.push({ keys, signal, answer: () => resolve(keys), fail }));
  return {
    clock: (lineOptions.clock as VirtualClock | undefined) ?? clock,
    line,
    batcher: batch(fn, { ...options, line }),
    calls,
  };
}
