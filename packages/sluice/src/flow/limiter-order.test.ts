import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import type { LimiterOptions, LimiterRunOptions } from "./limiter/options.ts";
import { Limiter } from "./limiter.ts";

it("starts who has the higher priority first, and among equals who came first", async () => {
  const { call, finishAll, started } = stage(1);
  void call("first");
  for (const [name, priority] of [
    ["a", 0],
    ["b", 2],
    ["c", 0],
    ["d", 2],
    ["e", -1],
  ] as const)
    void call(name, { priority });
  await finishAll();
  expect(started).toEqual(["first", "b", "d", "a", "c", "e"]);
});

it("lets a wait gain a step of priority each agingMs, so that no stream of higher ones starves it", async () => {
  const { clock, call, finish, started } = stage(1, { agingMs: 100 });
  void call("first");
  void call("low");
  await clock.advance(150);
  void call("high", { priority: 1 });
  void call("higher", { priority: 2 });
  for (let times = 0; times < 4; times += 1) await finish();
  expect(started).toEqual(["first", "higher", "low", "high"]);
});

it("never ages a priority when agingMs is Infinity", async () => {
  const { clock, call, finishAll, started } = stage(1, { agingMs: Infinity });
  void call("first");
  void call("low");
  await clock.advance(1e9);
  void call("high", { priority: 1 });
  await finishAll();
  expect(started).toEqual(["first", "high", "low"]);
});

it("gives a waiting call another priority by its id, and says how many there were", async () => {
  const { limit, call, finish, finishAll, started } = stage(1);
  void call("first");
  for (const id of ["a", "b", "c", "b"]) void call(id, { id });
  expect([limit.setPriority("b", 5), limit.setPriority("a", -1), limit.setPriority("z", 1)]).toEqual([2, 1, 0]);
  await finish();
  expect(limit.setPriority("b", 0)).toBe(1); // the other runs
  await finishAll();
  expect(started).toEqual(["first", "b", "c", "b", "a"]);
  expect(limit.setPriority("a", 1)).toBe(0);
});

it("forgets the id of a call that has left the line, however it did", async () => {
  const { clock, limit, call, finishAll } = stage(1);
  const stop = new AbortController();
  void call("first");
  void call("a", { id: "x", timeoutMs: 5 });
  void call("b", { id: "x", signal: stop.signal });
  void call("c", { id: "x" });
  await clock.advance(5);
  stop.abort();
  expect(limit.setPriority("x", 1)).toBe(1);
  limit.clear();
  expect(limit.setPriority("x", 1)).toBe(0);
  await finishAll();
});

it("starts at once who gets first in line by another priority and fits", async () => {
  const { limit, call, finishAll, started } = stage(2);
  void call("first");
  void call("heavy", { weight: 2 });
  void call("light", { id: 1 });
  expect(started).toEqual(["first"]);
  limit.setPriority(1, 1);
  await turn();
  expect(started).toEqual(["first", "light"]);
  await finishAll();
});

it("takes as many slots for a call as its weight, all at once, and lets no lighter call overtake", async () => {
  const { limit, call, finish, started } = stage(3);
  void call("one");
  void call("two");
  void call("heavy", { weight: 3 });
  void call("light");
  expect([started, limit.running, limit.stats().taken, limit.waiting]).toEqual([["one", "two"], 2, 2, 2]);
  await finish();
  expect(started).toEqual(["one", "two"]);
  await finish();
  expect([started, limit.running, limit.stats().taken]).toEqual([["one", "two", "heavy"], 1, 3]);
  await finish();
  expect(started).toEqual(["one", "two", "heavy", "light"]);
  await finish();
  expect([limit.running, limit.stats().taken]).toEqual([0, 0]);
});

it("starts at once a call of higher priority that fits where the first in line does not", async () => {
  const { call, started, finishAll } = stage(3);
  void call("two", { weight: 2 });
  void call("heavy", { weight: 3 });
  void call("urgent", { priority: 1 });
  expect(started).toEqual(["two", "urgent"]);
  await finishAll();
  expect(started).toEqual(["two", "urgent", "heavy"]);
});

it("starts those behind a heavy call as soon as it has left the line", async () => {
  const { clock, call, started, finishAll } = stage(2);
  const stop = new AbortController();
  void call("one");
  void call("heavy", { weight: 2, signal: stop.signal });
  void call("hasty", { weight: 2, timeoutMs: 10 });
  void call("light");
  stop.abort();
  await turn();
  expect(started).toEqual(["one"]);
  await clock.advance(10);
  expect(started).toEqual(["one", "light"]);
  await finishAll();
});

it("grants nothing in the midst of an abort to who is about to hear of it", async () => {
  const { limit, call, started, finishAll } = stage(2);
  const stop = new AbortController();
  void call("one");
  const outcomes = Promise.allSettled([
    call("heavy", { weight: 2, signal: stop.signal }),
    call("light", { signal: stop.signal }),
    call("free"),
  ]);
  stop.abort("enough");
  await turn();
  expect([started, limit.waiting, limit.stats().aborted]).toEqual([["one", "free"], 0, 2]);
  await finishAll();
  expect(await outcomes).toMatchObject([{ reason: "enough" }, { reason: "enough" }, { value: "free" }]);
});

it("C007: another limit starts what it allows in the same turn, or waits until less runs, and never goes negative", async () => {
  const { limit, call, finish, started } = stage(1);
  for (let id = 0; id < 10; id += 1) void call(String(id));
  limit.resize(5);
  expect(limit.running).toBe(5); // granted in this turn
  await turn();
  expect([started.length, limit.waiting, limit.concurrency]).toEqual([5, 5, 5]);
  limit.resize(2);
  for (const running of [4, 3, 2, 2]) {
    await finish();
    expect(limit.running).toBe(running);
  }
  expect(started).toHaveLength(6);
  limit.resize(4);
  await turn();
  expect([started.length, limit.running]).toEqual([8, 4]);
});

it("rejects a call that asks for more slots than there are, and who waits for more than there will be", async () => {
  const { limit, call, started, finishAll } = stage(2);
  await expect(limit.run(() => 1, { weight: 3 })).rejects.toThrow(
    new RangeError("weight must be an integer from 1 to the limit of 2, got 3"),
  );
  void call("one");
  const heavy = call("heavy", { weight: 2 });
  void call("light");
  limit.resize(1);
  await expect(heavy).rejects.toThrow(new RangeError("weight is 2 and the limit now 1"));
  expect(limit.stats().rejected).toBe(1);
  await finishAll();
  expect(started).toEqual(["one", "light"]);
});

it("starts by the new limit alone who comes first when a lower one has ended a wait", async () => {
  const { limit, call, started, finishAll } = stage(3);
  void call("two", { weight: 2 });
  void call("heavy", { weight: 3 });
  void call("light");
  limit.resize(2);
  await turn();
  expect([started, limit.stats().taken]).toEqual([["two"], 2]);
  await finishAll();
  expect(started).toEqual(["two", "light"]);
});

it("C113: a call that is refused for its weight leaves slots and places as they were", async () => {
  const { limit, call, started, finishAll } = stage(2, { capacity: 1 });
  await expect(limit.run(() => {}, { weight: 3, timeoutMs: 0 })).rejects.toThrow(RangeError);
  void call("busy");
  await expect(limit.run(() => {}, { weight: 2, timeoutMs: 0 })).rejects.toMatchObject({ code: "TIMEOUT" });
  await finishAll();
  const outcomes = Promise.allSettled(["a", "b", "c"].map((name) => call(name)));
  expect([limit.running, limit.waiting]).toEqual([2, 1]);
  await finishAll();
  expect((await outcomes).map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "fulfilled"]);
  expect(started).toEqual(["busy", "a", "b", "c"]);
});

it("says what is wrong with the options of a call, and takes nothing", async () => {
  const limit = new Limiter(2);
  const refused: readonly (readonly [LimiterRunOptions, string])[] = [
    [{ weight: 0 }, "weight must be an integer from 1 to the limit of 2, got 0"],
    [{ weight: 1.5 }, "weight must be an integer from 1 to the limit of 2, got 1.5"],
    [{ priority: Infinity }, "priority must be finite, got Infinity"],
    [{ maxRunMs: -1 }, "maxRunMs must be >= 0, got -1"],
    [
      { maxRunMs: 5, whenOverdue: "stop" as "keep-slot" },
      "whenOverdue must be one of keep-slot, release-slot, got stop",
    ],
  ];
  for (const [options, message] of refused) {
    await expect(limit.run(() => expect.unreachable(), options)).rejects.toThrow(message);
  }
  expect(() => limit.setPriority("x", Number.NaN)).toThrow("priority must be finite, got NaN");
  expect(() => limit.resize(0)).toThrow("concurrency must be an integer >= 1 or Infinity, got 0");
  expect(() => new Limiter(1, { agingMs: -1 })).toThrow("agingMs must be >= 0, got -1");
  expect(limit.stats()).toMatchObject({ running: 0, taken: 0, concurrency: 2 });
});

interface Stage {
  readonly clock: VirtualClock;
  readonly limit: Limiter;
  readonly started: string[];
  /** Runs until it is finished; its name is the result. */
  readonly call: (name: string, options?: LimiterRunOptions) => Promise<string>;
  /** Ends what has run longest. */
  readonly finish: () => Promise<void>;
  readonly finishAll: () => Promise<void>;
}

function stage(concurrency: number, options: LimiterOptions = {}): Stage {
  const clock = new VirtualClock();
  const limit = new Limiter(concurrency, { clock, ...options });
  const started: string[] = [];
  const running: (() => void)[] = [];
  const finish = async (): Promise<void> => {
    running.shift()?.();
    await turn();
  };
  return {
    clock,
    limit,
    started,
    finish,
    call(name, wait) {
      const fn = (): Promise<string> => {
        started.push(name);
        return new Promise((resolve) => void running.push(() => resolve(name)));
      };
      const result = limit.run(fn, wait);
      result.catch(() => {}); // whoever cares looks at it
      return result;
    },
    async finishAll() {
      while (running.length > 0) await finish();
    },
  };
}
