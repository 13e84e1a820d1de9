import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it, vi } from "vitest";
import { SelfWaitError, TimeoutError } from "../errors.ts";
import { namedEntries } from "../internal/names.ts";
import { type AbortSubject, abortCases } from "../testing/abort-suite.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { batch } from "./batch.ts";
import type { CacheLoadContext, CacheOptions, Eviction } from "./cache-options.ts";
import { Cache } from "./cache.ts";
import { freshness } from "./freshness.ts";
import { loadMany } from "./load-many.ts";

setFlagsFromString("--expose-gc");
const gc = runInNewContext("gc") as () => void;

const subject: AbortSubject = {
  name: "Cache.load",
  open(clock) {
    const { cache, loads } = stage({ clock });
    return {
      call: (options) => cache.load("key", options),
      satisfy: () => loads.at(-1)?.resolve("value") ?? cache.set("key", "value"),
      state: () => ({ entries: cache.size, loading: cache.stats().loading }),
    };
  },
};
for (const { title, run } of abortCases(subject)) it(title, run);

it("S03: three requests that miss one key make one load, and the next is answered with what it got", async () => {
  const { cache, loads } = stage();
  const calls = [cache.load("a"), cache.load("a"), cache.load("a")];
  expect(loads).toHaveLength(1);
  loads[0]?.resolve("value");
  await expect(Promise.all(calls)).resolves.toEqual(["value", "value", "value"]);
  await expect(cache.load("a")).resolves.toBe("value");
  expect(cache.stats()).toMatchObject({ hits: 1, misses: 3, loads: 1, entries: 1, loading: 0 });
});

it("hands the same promise to all who find the value there", async () => {
  const { cache, loads } = stage();
  const first = cache.load("a");
  loads[0]?.resolve("value");
  await first;
  expect(cache.load("a")).toBe(cache.load("a"));
});

it("C069: lets the callers of more loads than there is room for have their values, and keeps as many as it may", async () => {
  const { cache, loads } = stage({ maxEntries: 2 });
  const calls = ["a", "b", "c"].map((key) => cache.load(key));
  for (const { key, resolve } of loads) resolve(`value of ${key}`);
  await expect(Promise.all(calls)).resolves.toEqual(["value of a", "value of b", "value of c"]);
  expect(loads.map(({ context }) => context.signal.aborted)).toEqual([false, false, false]);
  expect(cache.size).toBe(2);
});

it("C070: with finishLoads, keeps the values of parallel loads although their caller has left", async () => {
  for (const slowFirst of [false, true]) {
    const { cache, loads } = stage({ finishLoads: true });
    const call = new AbortController();
    const keys = slowFirst ? ["k2", "k1"] : ["k1", "k2"];
    const calls = keys.map((key) => cache.load(key, { signal: call.signal }));
    call.abort(new Error("gone"));
    for (const each of calls) await expect(each).rejects.toBe(call.signal.reason);
    for (const key of ["k1", "k2"]) loads.find((load) => load.key === key)?.resolve(`value of ${key}`);
    await turn();
    expect(keys.map((key) => cache.peek(key))).toEqual(keys.map((key) => `value of ${key}`));
  }
});

it("C073: nine parallel calls over three keys are three loads", async () => {
  let runs = 0;
  const cache = new Cache(async (key: number) => (runs += 1) && key * 2, { maxEntries: 10 });
  const calls = Array.from({ length: 9 }, (_, n) => cache.load(n % 3));
  await expect(Promise.all(calls)).resolves.toEqual([0, 2, 4, 0, 2, 4, 0, 2, 4]);
  expect(runs).toBe(3);
});

it("F12.1: forgets a load that failed or threw, so that the next one tries anew", async () => {
  let calls = 0;
  const cache = new Cache<string, string>(
    (): Promise<string> => {
      calls += 1;
      if (calls === 1) throw new Error("threw");
      return calls === 2 ? Promise.reject(new Error("failed")) : Promise.resolve("value");
    },
    { maxEntries: 10 },
  );
  await expect(cache.load("a")).rejects.toThrow("threw");
  expect(cache.stats()).toMatchObject({ loading: 0, entries: 0, failures: 1 });
  await expect(cache.load("a")).rejects.toThrow("failed");
  await expect(cache.load("a")).resolves.toBe("value");
  expect(calls).toBe(3);
});

it("D03: a blip of the source is over when the source is back, though many asked meanwhile", async () => {
  let isDown = true;
  let calls = 0;
  const load = async (): Promise<string> => {
    calls += 1;
    if (isDown) throw new Error("down");
    return "value";
  };
  const cache = new Cache(load, { maxEntries: 10 });
  const during = await Promise.allSettled([cache.load("a"), cache.load("a"), cache.load("a")]);
  expect(during.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  isDown = false;
  await expect(cache.load("a")).resolves.toBe("value");
  expect(calls).toBe(2);
});

it("F12.3: what is invalidated is loaded anew, and the older load is handed to its callers but not kept", async () => {
  for (const invalidate of [
    (cache: Cache<string, string>) => void cache.delete("a"),
    (cache: Cache<string, string>) => cache.clear(),
  ]) {
    const { cache, loads } = stage();
    const old = cache.load("a");
    invalidate(cache);
    const young = cache.load("a");
    expect(loads).toHaveLength(2);
    loads[1]?.resolve("new");
    await expect(young).resolves.toBe("new");
    loads[0]?.resolve("old");
    await expect(old).resolves.toBe("old");
    expect(cache.peek("a")).toBe("new");
  }
});

it("keeps a value that was set, whatever an older load brings or fails with", async () => {
  for (const settle of ["resolve", "reject"] as const) {
    const { cache, loads } = stage();
    const old = cache.load("a");
    cache.set("a", "set");
    await expect(cache.load("a")).resolves.toBe("set");
    loads[0]?.[settle]("old");
    await Promise.allSettled([old]);
    expect(cache.peek("a")).toBe("set");
    expect(loads).toHaveLength(1);
  }
});

it("J24: one caller's abort or timeout leaves the load to the others, and aborts it when the last has left", async () => {
  const clock = new VirtualClock();
  const { cache, loads } = stage({ clock });
  const call = new AbortController();
  const first = cache.load("a", { signal: call.signal });
  const second = cache.load("a", { timeoutMs: 100 });
  const signal = loads[0]?.context.signal;
  call.abort(new Error("gone"));
  await expect(first).rejects.toBe(call.signal.reason);
  expect(signal?.aborted).toBe(false);
  second.catch(() => {});
  await clock.advance(100);
  await expect(second).rejects.toBeInstanceOf(TimeoutError);
  expect(signal?.aborted).toBe(true);
  expect(signal?.reason).toBeInstanceOf(TimeoutError);
  expect(cache.stats().loading).toBe(0);
});

it("lets a caller leave whose signal was aborted by the loader that it called", async () => {
  const controller = new AbortController();
  let loadSignal: AbortSignal | undefined;
  const load = (_: string, { signal }: CacheLoadContext<string>): Promise<string> => {
    loadSignal = signal;
    controller.abort(new Error("enough"));
    return new Promise(() => {});
  };
  const cache = new Cache(load, { maxEntries: 1 });
  await expect(cache.load("a", { signal: controller.signal })).rejects.toThrow("enough");
  expect([loadSignal?.aborted, getEventListeners(controller.signal, "abort")]).toEqual([true, []]);
});

it("keeps nothing of what has come and gone, with an end or without, cleared or evicted", async () => {
  const values: WeakRef<object>[] = [];
  const load = (_: number, context: CacheLoadContext<object>): object => {
    context.ttlMs = values.length === 50 ? 1_000 : undefined; // the first that has an end
    const value = {};
    values.push(new WeakRef(value));
    return value;
  };
  const churned = new Cache(load, { maxEntries: 4 });
  const cleared = new Cache(load, { maxEntries: 100, ttlMs: 1_000 });
  for (let key = 0; key < 200; key += 1) await churned.load(key);
  for (let key = 0; key < 100; key += 1) await cleared.load(key);
  cleared.clear();
  await turn(); // a new WeakRef holds its target for the rest of the turn
  gc();
  expect(values.filter((value) => value.deref() !== undefined).length).toBeLessThan(50);
  expect([churned.size, cleared.size]).toEqual([4, 0]);
});

it("never aborts a load for which somebody waits who cannot leave", async () => {
  const { cache, loads } = stage();
  const call = new AbortController();
  const leaves = cache.load("a", { signal: call.signal });
  const stays = cache.load("a");
  call.abort();
  await expect(leaves).rejects.toBe(call.signal.reason);
  expect(loads[0]?.context.signal.aborted).toBe(false);
  loads[0]?.resolve("value");
  await expect(stays).resolves.toBe("value");
});

it("lets nobody join a load that was abandoned, and keeps nothing of it", async () => {
  const { cache, loads } = stage();
  const call = new AbortController();
  const left = cache.load("a", { signal: call.signal });
  call.abort();
  await expect(left).rejects.toBe(call.signal.reason);
  const next = cache.load("a");
  expect(loads).toHaveLength(2);
  loads[0]?.resolve("late");
  await turn();
  expect(cache.has("a")).toBe(false);
  loads[1]?.resolve("new");
  await expect(next).resolves.toBe("new");
});

it("has an aborted signal for a load that asks for it only after all have left", async () => {
  const { cache, loads } = stage();
  const call = new AbortController();
  const left = cache.load("a", { signal: call.signal });
  call.abort(new Error("gone"));
  await expect(left).rejects.toBe(call.signal.reason);
  expect(loads[0]?.context.signal.reason).toBe(call.signal.reason);
});

it("leaves no listener on a signal when a value is there at once", async () => {
  const { cache } = stage();
  cache.set("a", "value");
  const call = new AbortController();
  await cache.load("a", { signal: call.signal });
  expect(getEventListeners(call.signal, "abort")).toHaveLength(0);
});

it("refuses a load that asks for its own key before it has begun, and works on", async () => {
  let cache: Cache<string, unknown> | undefined = undefined as Cache<string, unknown> | undefined;
  cache = new Cache((key: string) => (key === "ring" ? cache?.load("ring") : "fine"), { maxEntries: 10 });
  await expect(cache.load("ring")).rejects.toBeInstanceOf(SelfWaitError);
  await expect(cache.load("other")).resolves.toBe("fine");
  expect(cache.stats().loading).toBe(0);
});

it("keeps a value for its ttlMs and not longer, by its own clock", async () => {
  const clock = new VirtualClock();
  const { cache, loads } = stage({ clock, ttlMs: 100 });
  cache.set("a", "value");
  await clock.advance(99);
  expect([cache.has("a"), cache.peek("a")]).toEqual([true, "value"]);
  await expect(cache.load("a")).resolves.toBe("value");
  await clock.advance(1);
  expect([cache.has("a"), cache.peek("a"), cache.size]).toEqual([false, undefined, 0]);
  void cache.load("a");
  expect(loads).toHaveLength(1);
  expect(cache.stats().expired).toBe(1);
});

it("lets the load and whoever sets a value say how long it is kept", async () => {
  const clock = new VirtualClock();
  const cache = new Cache(
    (key: number, context) => {
      context.ttlMs = key;
      return key;
    },
    { maxEntries: 10, ttlMs: 5, clock },
  );
  await Promise.all([cache.load(50), cache.load(0)]);
  cache.set(3, 3, { ttlMs: 20 });
  expect(cache.has(0)).toBe(false);
  await clock.advance(19);
  expect([cache.has(50), cache.has(3)]).toEqual([true, true]);
  await clock.advance(1);
  expect([cache.has(50), cache.has(3)]).toEqual([true, false]);
  await clock.advance(30);
  expect(cache.has(50)).toBe(false);
});

it("hands a load what was kept until now, a value and no failure", async () => {
  const clock = new VirtualClock();
  const rules = freshness({ staleOnErrorMs: 1_000, failureTtlMs: 10 });
  const { cache, loads } = stage({ clock, ttlMs: 100, freshness: rules });
  const first = cache.load("a");
  loads[0]?.resolve("old");
  await first;
  await clock.advance(100);
  void cache.load("a");
  const failed = cache.load("b");
  loads[2]?.reject("down");
  await expect(failed).rejects.toBe("down");
  await expect(cache.load("b")).rejects.toBe("down"); // it is kept
  await clock.advance(10);
  void cache.load("b");
  expect(loads.map(({ key, context }) => [key, context.stale])).toEqual([
    ["a", undefined],
    ["a", "old"],
    ["b", undefined],
    ["b", undefined],
  ]);
});

it("finds what is too old by looking at two entries with each insertion, without a timer", async () => {
  const clock = new VirtualClock();
  const { cache } = stage({ clock, maxEntries: 1_000, ttlMs: 10 });
  for (let key = 0; key < 100; key += 1) cache.set(String(key), "old");
  await clock.advance(10);
  for (let key = 100; key < 300; key += 1) cache.set(String(key), "new");
  expect(cache.size).toBe(200);
  expect(clock.timers).toBe(0);
});

it("keeps no more weight than it may, nor what is too heavy alone, which it still hands out", async () => {
  const cache = new Cache((key: number) => key, { maxEntries: 10, maxWeight: 10, weigh: (value) => value });
  await expect(cache.load(11)).resolves.toBe(11);
  expect(cache.size).toBe(0);
  cache.set(1, 6);
  cache.set(2, 4);
  expect(cache.stats()).toMatchObject({ entries: 2, weight: 10 });
  cache.set(3, 5);
  expect(cache.peek(3)).toBe(5);
  expect(cache.stats().weight).toBeLessThanOrEqual(10);
  cache.set(3, 11); // no value is better than the one it was to replace
  expect(cache.has(3)).toBe(false);
});

it("weighs a replaced value anew", () => {
  const cache = new Cache((key: string) => key, { maxEntries: 10, maxWeight: 10, weigh: ({ length }) => length });
  cache.set("a", "12345678");
  cache.set("a", "12");
  cache.set("b", "12345678");
  expect(cache.stats()).toMatchObject({ entries: 2, weight: 10, replaced: 1 });
});

it("hands a value out although it cannot be kept, and lets the fault surface", async () => {
  const unhandled = vi.fn<(error: unknown) => void>();
  const fault = new Error("a weigh that fails");
  process.on("unhandledRejection", unhandled);
  const weigh = (): number => {
    throw fault;
  };
  const cache = new Cache((key: string) => key, { maxEntries: 10, weigh });
  await expect(cache.load("a")).resolves.toBe("a");
  await turn();
  process.off("unhandledRejection", unhandled);
  expect(unhandled.mock.calls.map(([error]) => error)).toEqual([fault]);
  expect(() => cache.set("a", "b")).toThrow(fault);
  expect(cache.size).toBe(0);
});

it("refuses an idleMs where no freshness counts uses, by a set and by a load, whose value it hands out", async () => {
  const unhandled = vi.fn<(error: unknown) => void>();
  process.on("unhandledRejection", unhandled);
  const weigh = vi.fn<() => number>(() => 1);
  const cache = new Cache((_: string, context) => String((context.idleMs = 50)), { maxEntries: 10, weigh });
  await expect(cache.load("a")).resolves.toBe("50");
  await turn();
  process.off("unhandledRejection", unhandled);
  const refused = new TypeError("idleMs needs a cache with freshness, got 50");
  expect(unhandled.mock.calls.map(([error]) => error)).toEqual([refused]);
  cache.set("b", "good");
  expect(() => cache.set("b", "bad", { idleMs: 50 })).toThrow(refused);
  expect(() => cache.set("b", "bad", { idleMs: Infinity })).toThrow(TypeError);
  cache.set("c", "good", { idleMs: undefined });
  expect([[...cache], weigh.mock.calls.length]).toEqual([
    [
      ["b", "good"],
      ["c", "good"],
    ],
    2,
  ]);
});

it("changes nothing by a set whose weigh throws", async () => {
  const { cache, loads } = stage({
    weigh: (value) => {
      if (value === "bad") throw new Error("no weight");
      return 1;
    },
  });
  cache.set("a", "good");
  const load = cache.load("b");
  expect(() => cache.set("b", "bad")).toThrow("no weight");
  expect(() => cache.set("a", "bad")).toThrow("no weight");
  loads[0]?.resolve("loaded");
  await load;
  expect([cache.peek("a"), cache.peek("b")]).toEqual(["good", "loaded"]);
});

it("tells of each value that is kept no more, why, and after the code that was running", async () => {
  const clock = new VirtualClock();
  const told: Eviction<string, string>[] = [];
  const { cache } = stage({ clock, maxEntries: 2, onEvict: (eviction) => void told.push(eviction) });
  cache.set("a", "1");
  cache.set("a", "2");
  cache.set("b", "1", { ttlMs: 5 });
  cache.set("c", "1");
  cache.delete("c");
  expect(told).toEqual([]);
  await clock.advance(5);
  cache.has("b");
  await turn();
  expect(told).toEqual([
    { key: "a", value: "1", reason: "replaced" },
    { key: "a", value: "2", reason: "evicted" },
    { key: "c", value: "1", reason: "deleted" },
    { key: "b", value: "1", reason: "expired" },
  ]);
  expect(cache.stats()).toMatchObject({ replaced: 1, evicted: 1, deleted: 1, expired: 1, entries: 0 });
});

it("is not harmed by an onEvict that throws or comes back", async () => {
  const unhandled = vi.fn<(error: unknown) => void>();
  process.on("unhandledRejection", unhandled);
  const { cache } = stage({
    maxEntries: 1,
    onEvict({ key }) {
      if (key === "a") cache.set("c", "from onEvict");
      throw new Error(`of ${key}`);
    },
  });
  cache.set("a", "1");
  cache.set("b", "2");
  await turn();
  process.off("unhandledRejection", unhandled);
  expect(unhandled.mock.calls.map(([error]) => String(error))).toEqual(["Error: of a", "Error: of b"]);
  expect([...cache]).toEqual([["c", "from onEvict"]]);
});

it("never counts a peek, a has or a walk as a use", () => {
  const { cache } = stage({ maxEntries: 2 });
  cache.set("a", "1");
  cache.set("b", "2");
  expect([cache.peek("a"), cache.has("a"), [...cache].length]).toEqual(["1", true, 2]);
  cache.set("c", "3");
  expect([cache.has("a"), cache.has("b"), cache.has("c")]).toEqual([false, true, true]);
});

it("keeps what was used before what was not", async () => {
  const { cache } = stage({ maxEntries: 2 });
  cache.set("a", "1");
  cache.set("b", "2");
  await cache.load("a");
  cache.set("c", "3");
  expect([cache.has("a"), cache.has("b"), cache.has("c")]).toEqual([true, false, true]);
});

it("keeps undefined and null as values", async () => {
  let loads = 0;
  const cache = new Cache((key: string) => (loads += 1) && (key === "none" ? undefined : null), { maxEntries: 10 });
  for (const key of ["none", "nil", "none", "nil"]) await cache.load(key);
  expect([loads, cache.has("none"), cache.has("nil")]).toEqual([2, true, true]);
});

it("loads many keys by one call of a batch, but for those that are there or under way", async () => {
  const asked: number[][] = [];
  const rows = batch(async (keys: readonly number[]) => (asked.push([...keys]), keys.map((key) => key * 10)));
  const cache = new Cache((key: number) => rows.load(key), { maxEntries: 10 });
  const early = cache.load(1);
  await early;
  const results = await loadMany(cache, [1, 2, 3, 2]);
  expect(results.map((result) => result.status === "fulfilled" && result.value)).toEqual([10, 20, 30, 20]);
  expect(asked).toEqual([[1], [2, 3]]);
  expect(cache.size).toBe(3);
});

it("is found by its name, and tells how long its oldest load has been under way", async () => {
  const clock = new VirtualClock();
  const { cache } = stage({ name: "prices", clock });
  expect(namedEntries().find(({ target }) => target.deref() === cache)).toMatchObject({
    kind: "cache",
    name: "prices",
  });
  await clock.advance(70);
  void cache.load("a");
  await clock.advance(30);
  void cache.load("b");
  expect(cache.stats()).toMatchObject({ loading: 2, oldestLoadMs: 30 });
});

it("rejects, and loses no error of a load, when the clock throws", async () => {
  const clock = new VirtualClock();
  const { cache, loads } = stage({ clock, ttlMs: 50, freshness: freshness({ failureTtlMs: 5 }) });
  const first = cache.load("a");
  loads[0]?.resolve("value");
  await first;
  await cache.load("a");
  const broken = cache.load("b");
  const thrown = new Promise((resolve) => process.once("unhandledRejection", resolve));
  vi.spyOn(clock, "now").mockImplementation(() => {
    throw new Error("no time");
  });
  await expect(cache.load("a")).rejects.toThrow("no time");
  loads[1]?.reject(new Error("not there"));
  await expect(broken).rejects.toThrow("not there");
  expect(await thrown).toMatchObject({ message: "no time" });
});

it("refuses bad options by name, rule and value", () => {
  for (const name of ["weigh", "keyOf", "onEvict"])
    expect(() => make({ maxEntries: 1, [name]: "x" })).toThrow(`${name} must be a function, got string`);
  expect(() => make({ maxEntries: 1, freshness: { staleMs: 5 } })).toThrow("freshness.begin must be a function");
  expect(() => make({ maxEntries: 0 })).toThrow("maxEntries must be an integer >= 1, got 0");
  expect(() => make({})).toThrow("maxEntries must be a number, got undefined");
  expect(() => make({ maxEntries: 1, maxWeight: 0.5 })).toThrow(
    "maxWeight must be an integer >= 0 or Infinity, got 0.5",
  );
  expect(() => make({ maxEntries: 1, ttlMs: -1 })).toThrow("ttlMs must be >= 0, got -1");
  expect(() => new Cache("x" as never, { maxEntries: 1 })).toThrow("load must be a function, got string");
  const { cache: good } = stage();
  expect(() => good.set("a", "b", { ttlMs: Number.NaN })).toThrow("ttlMs must be >= 0, got NaN");
  expect(good.size).toBe(0);
});

function make(options: object): Cache<string, number> {
  return new Cache(() => 1, options as CacheOptions<string, number>);
}

interface Load {
  readonly key: string;
  readonly context: CacheLoadContext<string>;
  readonly resolve: (value: string) => void;
  readonly reject: (reason: unknown) => void;
}

/** A cache whose loads are settled by hand. */
function stage(options: Partial<CacheOptions<string, string>> = {}): { cache: Cache<string, string>; loads: Load[] } {
  const loads: Load[] = [];
  const load = (key: string, context: CacheLoadContext<string>): Promise<string> =>
    new Promise((resolve, reject) => void loads.push({ key, context, resolve, reject }));
  return { cache: new Cache(load, { maxEntries: 1_000, ...options }), loads };
}
