import { AsyncLocalStorage } from "node:async_hooks";
import { Readable } from "node:stream";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { CountingController } from "../testing/counting-signal.ts";
import { turn } from "../testing/turn.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import type { MapContext } from "./lanes.ts";
import { mapLimit } from "./map-limit.ts";

it("J12: runs exactly `concurrency` calls at a time when there are items enough, and keeps the order", async () => {
  const clock = new VirtualClock();
  const seen = counter();
  const results = mapLimit([50, 10, 40, 20, 30, 5], 3, async (ms, { index }) => {
    seen.enter();
    await elapse(clock, ms);
    seen.leave();
    return `${index}: ${ms}`;
  });
  await clock.advance(1_000);
  expect(await results).toEqual(["0: 50", "1: 10", "2: 40", "3: 20", "4: 30", "5: 5"]);
  expect(seen.peak).toBe(3);
});

it("J13: resolves an empty list at once, and starts no more calls than there are items", async () => {
  expect(await mapLimit([], 5, fail)).toEqual([]);
  const started: number[] = [];
  const results = mapLimit([1, 2], 50, async (item) => started.push(item));
  expect(started).toEqual([1, 2]);
  expect(await results).toEqual([1, 2]);
});

it("J13: maps lists, iterables and async iterables alike", async () => {
  for (const kind of ["list", "iterable", "async iterable"]) {
    expect(await mapLimit(sourceOf([1, 2, 3], kind), 2, async (item) => item * 2)).toEqual([2, 4, 6]);
  }
  expect(await mapLimit("abc", 2, (letter, { index }) => letter + index)).toEqual(["a0", "b1", "c2"]);
});

it("J14: rejects at once with the first error as it is, starts nothing more, and aborts what runs with it", async () => {
  const failure = new Error("item 1");
  const started: number[] = [];
  const reasons: unknown[] = [];
  const never = (signal: AbortSignal): Promise<never> =>
    new Promise((_, reject) => {
      signal.addEventListener("abort", () => {
        reasons.push(signal.reason);
        reject(signal.reason as Error);
      });
    });
  const late: unknown[] = [];
  const results = mapLimit(
    [0, 1, 2, 3, 4],
    3,
    async (item, { signal }) => {
      started.push(item);
      if (item === 1) throw failure;
      await never(signal);
    },
    { onLateError: (error) => late.push(error) },
  );
  await expect(results).rejects.toBe(failure);
  await turn();
  expect([started, reasons, late]).toEqual([[0, 1, 2], [failure, failure], []]);
});

it("J15: refuses a concurrency that is no integer >= 1, and rejects for what else it can't work with", async () => {
  for (const concurrency of [0, -1, 1.5, Number.NaN, Infinity, "2"]) {
    await expect(mapLimit([1], concurrency as number, fail)).rejects.toThrow(/^concurrency must be a/);
  }
  await expect(mapLimit([1], 0, fail)).rejects.toThrow(RangeError);
  for (const items of [undefined, null, 5, {}]) {
    await expect(mapLimit(items as number[], 1, fail)).rejects.toThrow(/^items must be iterable, got/);
  }
  await expect(mapLimit([1], 1, "fn" as unknown as () => void)).rejects.toThrow("fn must be a function, got string");
  const toNobody = mapLimit([1], 1, fail, { onLateError: 5 as never });
  await expect(toNobody).rejects.toThrow("onLateError must be a function, got number");
});

it("J15: takes a synchronous throw for a rejection", async () => {
  const started: number[] = [];
  const results = mapLimit([0, 1, 2], 3, (item) => {
    started.push(item);
    if (item === 1) fail();
    return turn();
  });
  await expect(results).rejects.toThrow("broken");
  expect(started).toEqual([0, 1]);
});

it("J09: claims each item once and writes each result by its index, whatever ends first", () => {
  const plan = fc.array(fc.record({ kind: fc.constantFrom("value", "promise", "slow"), ms: fc.nat({ max: 9 }) }), {
    maxLength: 30,
  });
  const sources = fc.constantFrom("list", "iterable", "async iterable");
  return fc.assert(
    fc.asyncProperty(plan, fc.integer({ min: 1, max: 6 }), sources, async (steps, concurrency, kind) => {
      const clock = new VirtualClock();
      const seen = counter();
      const calls: number[] = [];
      const results = mapLimit(sourceOf(steps, kind), concurrency, (step, { index }) => {
        calls.push(index);
        if (step.kind === "value") return index;
        seen.enter();
        return (step.kind === "slow" ? elapse(clock, step.ms) : Promise.resolve()).then(() => {
          seen.leave();
          return index;
        });
      });
      await clock.advance(300);
      const all = steps.map((_, index) => index);
      expect(await results).toEqual(all);
      expect(calls).toEqual(all);
      expect(seen.peak).toBeLessThanOrEqual(concurrency);
    }),
    { numRuns: 300 },
  );
});

it("C046: rejects with the source's own error, and starts nothing after it", async () => {
  const started: number[] = [];
  const fn = async (item: number): Promise<void> => {
    started.push(item);
    await turn();
  };
  await expect(mapLimit(failsAfter(3), 4, fn)).rejects.toThrow("no item 3");
  await expect(mapLimit(Readable.from(failsAfter(2)), 4, fn)).rejects.toThrow("no item 2");
  await turn();
  expect(started).toEqual([0, 1, 2, 0, 1]);
});

it("C046: rejects with the first error at its instant; the second goes to onLateError, and none is unhandled", async () => {
  const clock = new VirtualClock();
  const late: unknown[] = [];
  const fails = async (ms: number): Promise<void> => {
    await elapse(clock, ms);
    throw new Error(`failed at ${ms}`);
  };
  const told = mapLimit([10, 20, 30], 2, fails, { onLateError: (error) => late.push(error) });
  const untold = mapLimit([10, 20, 30], 2, fails);
  const firsts = Promise.allSettled([told, untold]);
  await clock.advance(10);
  expect((await firsts).map((each) => each.status === "rejected" && each.reason.message)).toEqual([
    "failed at 10",
    "failed at 10",
  ]);
  expect(late).toEqual([]);
  await clock.advance(90);
  expect(late).toEqual([new Error("failed at 20")]);
  expect(clock.timers).toBe(0); // 30 was never started
});

it("C047: leaves no listener on a signal of 1 100 calls, nor adds one when it is aborted", async () => {
  const shared = new CountingController();
  const options = { signal: shared.signal };
  await Promise.all(Array.from({ length: 1_000 }, () => mapLimit([1, 2], 2, async (item) => item, options)));
  expect([shared.listeners, shared.most]).toEqual([0, 1]);
  await Promise.allSettled(Array.from({ length: 100 }, () => mapLimit([1, 2], 2, fail, options)));
  expect(shared.listeners).toBe(0);
  shared.abort(new Error("the end"));
  const after = await Promise.allSettled(Array.from({ length: 10 }, () => mapLimit([1], 1, turn, options)));
  expect(after.every((each) => each.status === "rejected" && each.reason === shared.signal.reason)).toBe(true);
  expect(shared.listeners).toBe(0);
});

it("C048: rejects with the abort's reason though the last item has been read", async () => {
  const call = new AbortController();
  const results = mapLimit([1, 2], 2, () => new Promise(() => {}), { signal: call.signal });
  await turn();
  call.abort(new Error("too late"));
  await expect(results).rejects.toBe(call.signal.reason);
});

it("F05.1: 500 items are 8 calls at a time, where a bare map makes 500", async () => {
  const [bare, bounded] = [counter(), counter()];
  const items = Array.from({ length: 500 }, (_, item) => item);
  const ask = (seen: typeof bare) => async (): Promise<void> => {
    seen.enter();
    await turn();
    seen.leave();
  };
  await Promise.all(items.map(ask(bare)));
  await mapLimit(items, 8, ask(bounded));
  expect([bare.peak, bounded.peak]).toEqual([500, 8]);
});

it("K01: starts no call in the turn of the map beyond the limit", async () => {
  let started = 0;
  const results = mapLimit(Array.from({ length: 20_000 }).fill(0), 20, async () => (started += 1));
  expect(started).toBe(20); // J06: `Promise.all` over `map` has sent 20 000 by now
  await results;
});

it("D01, K02: after item 2 of 6 has failed, the rest is neither started nor paid for", async () => {
  const started: number[] = [];
  const results = mapLimit([1, 2, 3, 4, 5, 6], 4, async (item) => {
    started.push(item);
    await turn();
    if (item === 2) fail();
    await turn();
  });
  await expect(results).rejects.toThrow("broken");
  for (let turns = 0; turns < 5; turns += 1) await turn();
  expect(started).toEqual([1, 2, 3, 4, 5].slice(0, started.length));
  expect(started.length).toBeLessThan(6);
});

it("runs functions that answer at once one after the other, in the turn of the call", async () => {
  const log: string[] = [];
  const results = mapLimit([1, 2, 3], 1, (item) => log.push(`item ${item}`));
  log.push("returned");
  expect(await results).toEqual([1, 2, 3]);
  expect(log).toEqual(["item 1", "item 2", "item 3", "returned"]);
});

it("awaits thenables as `await` does", async () => {
  expect(await mapLimit([1, 2], 1, thenable)).toEqual([1, 2]);
});

it("hands an item that is a promise to fn as it is: it is under way already, and no limit holds it", async () => {
  const items = [Promise.resolve(1), Promise.resolve(2)];
  const kinds = await mapLimit(items, 1, (item) => (item instanceof Promise ? item : fail()));
  expect(kinds).toEqual([1, 2]);
});

it("reads an async source one item at a time, and no further than calls can start", async () => {
  let [read, asked] = [0, 0];
  const source: AsyncIterable<number> = {
    [Symbol.asyncIterator]: () => ({
      async next() {
        asked += 1;
        expect(asked).toBe(1);
        await turn();
        asked -= 1;
        read += 1;
        return { done: read > 10, value: read };
      },
    }),
  };
  const { fn, finish } = work();
  const results = mapLimit(source, 2, fn);
  await settle();
  expect(read).toBe(2);
  finish();
  await settle();
  expect(read).toBe(3);
  for (let rest = 0; rest < 20; rest += 1) await settle().then(finish);
  expect((await results).length).toBe(10);
});

it("closes its source at an error and at an abort, once, and not when it has ended or failed by itself", async () => {
  const closed: string[] = [];
  const source = async function* (name: string, length: number): AsyncGenerator<number> {
    try {
      for (let item = 0; item < length; item += 1) yield item;
    } finally {
      closed.push(name);
    }
  };
  await expect(mapLimit(source("error", 9), 2, fail)).rejects.toThrow("broken");
  const call = new AbortController();
  const results = mapLimit(source("abort", 9), 2, () => new Promise(() => {}), call);
  await settle();
  call.abort();
  await expect(results).rejects.toBe(call.signal.reason);
  await settle();
  expect(closed).toEqual(["error", "abort"]);
  const returned: string[] = [];
  const quiet = (name: string, done: boolean): Iterator<number> => ({
    next: () => (done ? { done, value: undefined } : fail()),
    return: () => ({ done: true, value: returned.push(name) }),
  });
  await mapLimit({ [Symbol.iterator]: () => quiet("ended", true) }, 1, turn);
  await expect(mapLimit({ [Symbol.iterator]: () => quiet("failed", false) }, 1, turn)).rejects.toThrow("broken");
  expect(returned).toEqual([]);
  const gone = { signal: AbortSignal.abort("gone") };
  await expect(mapLimit({ [Symbol.iterator]: () => quiet("aborted before", true) }, 1, turn, gone)).rejects.toBe(
    "gone",
  );
  expect(returned).toEqual(["aborted before"]);
});

it("closes a generator that aborts the map from its own code", async () => {
  const call = new AbortController();
  let closed = false;
  const source = function* (): Generator<number> {
    try {
      yield 1;
      call.abort(new Error("from within"));
      yield 2;
    } finally {
      closed = true;
    }
  };
  const late: unknown[] = [];
  const started: number[] = [];
  const results = mapLimit(source(), 2, async (item) => started.push(item), {
    signal: call.signal,
    onLateError: (error) => late.push(error),
  });
  await expect(results).rejects.toBe(call.signal.reason);
  await turn();
  expect([closed, started, late]).toEqual([true, [1], []]);
});

it("tells onLateError of a source that fails to close, and of an item error in the turn of an abort", async () => {
  const late: unknown[] = [];
  const onLateError = (error: unknown): unknown => late.push(error);
  const source: Iterable<number> = {
    [Symbol.iterator]: () => ({ next: () => ({ done: false, value: 1 }), return: () => fail() }),
  };
  await expect(mapLimit(source, 1, () => Promise.reject(new Error("first")), { onLateError })).rejects.toThrow("first");
  const call = new AbortController();
  const results = mapLimit(
    [1],
    1,
    () => {
      call.abort(new Error("abort"));
      throw new Error("late");
    },
    { signal: call.signal, onLateError },
  );
  await expect(results).rejects.toThrow("abort");
  await turn();
  expect(late).toEqual([new Error("broken"), new Error("late")]);
});

it("rejects for a source whose answers are none", async () => {
  const source = { [Symbol.asyncIterator]: () => ({ next: async () => undefined as never }) };
  await expect(mapLimit(source, 1, turn)).rejects.toThrow(TypeError);
});

it("maps in the async context of its caller, items that are read later included", async () => {
  const context = new AsyncLocalStorage<string>();
  const fn = async (): Promise<unknown> => {
    await turn();
    return context.getStore();
  };
  const runs = ["a", "b"].map((id) => context.run(id, () => mapLimit(sixLater(), 2, fn)));
  expect(await Promise.all(runs)).toEqual(["a", "b"].map((id) => Array.from({ length: 6 }, () => id)));
});

it("gives all calls of a map one signal, which stays as it is when all went well", async () => {
  const signals: AbortSignal[] = [];
  const call = new AbortController();
  await mapLimit([1, 2, 3], 2, async (_, { signal }: MapContext) => signals.push(signal), call);
  call.abort();
  expect(new Set(signals).size).toBe(1);
  expect(signals[0]?.aborted).toBe(false);
});

it("maps what is appended to the list meanwhile, and leaves no gap for what is taken away", async () => {
  const growing = [1, 2];
  const grown = await mapLimit(growing, 1, async (item) => {
    if (item < 4) growing.push(item + 2);
    return item;
  });
  expect(grown).toEqual([1, 2, 3, 4, 5]);
  const shrinking = [1, 2, 3, 4];
  expect(await mapLimit(shrinking, 1, async () => shrinking.pop())).toEqual([4, 3]);
});

/** One that is no promise, and calls back twice. */
function thenable(value: number): PromiseLike<number> {
  const then = (done: (value: number) => void): void => [value, -1].forEach((each) => done(each));
  return { then } as PromiseLike<number>; // oxlint-disable-line unicorn/no-thenable -- its subject
}

function* failsAfter(count: number): Generator<number> {
  for (let item = 0; item < count; item += 1) yield item;
  throw new Error(`no item ${count}`);
}

async function* sixLater(): AsyncGenerator<number> {
  for (let item = 0; item < 6; item += 1) {
    await turn();
    yield item;
  }
}

function fail(): never {
  throw new Error("broken");
}

function elapse(clock: VirtualClock, ms: number): Promise<void> {
  return new Promise((onTimer) => void clock.setTimer(ms, { onTimer }));
}

/** How many are in at a time, at most. */
function counter(): { enter(): void; leave(): void; peak: number } {
  let inside = 0;
  const seen = {
    peak: 0,
    enter: () => void (seen.peak = Math.max(seen.peak, (inside += 1))),
    leave: () => void (inside -= 1),
  };
  return seen;
}

function sourceOf<T>(items: readonly T[], kind: string): Iterable<T> | AsyncIterable<T> {
  if (kind === "list") return items;
  if (kind === "iterable") return new Set(items);
  return (async function* () {
    yield* items;
  })();
}

/** A function whose calls end one by one, the oldest first. */
function work(): { readonly fn: () => Promise<void>; readonly finish: () => void } {
  const running: (() => void)[] = [];
  return { fn: () => new Promise((resolve) => void running.push(resolve)), finish: () => running.shift()?.() };
}

async function settle(): Promise<void> {
  for (let turns = 0; turns < 4; turns += 1) await turn();
}
