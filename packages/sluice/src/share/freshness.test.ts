import { setImmediate as turn } from "node:timers/promises";
import { expect, it, vi } from "vitest";
import type { Eviction } from "./cache-options.ts";
import { seededRandom } from "../testing/seeded-random.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Cache } from "./cache.ts";
import { freshness, type FreshnessOptions } from "./freshness.ts";

it("C066: ten parallel reads of a stale value are answered with it, and make one load", async () => {
  const { cache, clock, loads } = stage({ staleMs: 100 });
  await fill(cache, loads, "old");
  await clock.advance(1_050);
  const reads = Array.from({ length: 10 }, () => cache.load("key"));
  await expect(Promise.all(reads)).resolves.toEqual(Array.from({ length: 10 }, () => "old"));
  expect(loads).toHaveLength(2);
  loads[1]?.resolve("new");
  await turn();
  await expect(cache.load("key")).resolves.toBe("new");
  expect(loads).toHaveLength(2);
});

it("waits for a new value once the old one is too old to be given out", async () => {
  const { cache, clock, loads } = stage({ staleMs: 100 });
  await fill(cache, loads, "old");
  await clock.advance(1_100);
  const read = cache.load("key");
  loads[1]?.resolve("new");
  await expect(read).resolves.toBe("new");
});

it("C072: gives out the old value each time that no new one can be had, tells of the failure, and nothing is unhandled", async () => {
  for (const options of [{ staleOnErrorMs: 10_000 }, { staleMs: 10_000 }]) {
    const unhandled = vi.fn<(error: unknown) => void>();
    process.on("unhandledRejection", unhandled);
    const told: unknown[] = [];
    const { cache, clock, loads } = stage({ ...options, onError: (error, key) => void told.push([error, key]) });
    await fill(cache, loads, "old");
    await clock.advance(1_000);
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      const read = cache.load("key");
      loads[attempt]?.reject(`failure ${attempt}`);
      await expect(read).resolves.toBe("old");
      await turn();
    }
    process.off("unhandledRejection", unhandled);
    expect(told).toEqual([1, 2, 3].map((attempt) => [`failure ${attempt}`, "key"]));
    expect(unhandled).not.toHaveBeenCalled();
    expect(cache.stats()).toMatchObject({ loads: 4, failures: 3 });
  }
});

it("F12.2: one failure reaches none of 800 callers as long as the old value may stand in", async () => {
  const { cache, clock, loads } = stage({ staleOnErrorMs: 500 });
  await fill(cache, loads, "old");
  await clock.advance(1_000);
  const reads = Array.from({ length: 800 }, () => cache.load("key"));
  expect(loads).toHaveLength(2);
  loads[1]?.reject(new Error("blip"));
  expect(new Set(await Promise.all(reads))).toEqual(new Set(["old"]));
  await clock.advance(500);
  const late = cache.load("key");
  loads[2]?.reject(new Error("down"));
  await expect(late).rejects.toThrow("down");
});

it("rejects when the old value became too old while a new one was loaded", async () => {
  const { cache, clock, loads } = stage({ staleOnErrorMs: 500 });
  await fill(cache, loads, "old");
  await clock.advance(1_499);
  const read = cache.load("key");
  await clock.advance(1);
  loads[1]?.reject(new Error("down"));
  await expect(read).rejects.toThrow("down");
});

it("does not ask again within failureTtlMs of a failure, with an old value and without", async () => {
  const { cache, clock, loads } = stage({ staleOnErrorMs: 500, failureTtlMs: 50 });
  const first = cache.load("key");
  loads[0]?.reject(new Error("down"));
  await expect(first).rejects.toThrow("down");
  await clock.advance(49);
  await expect(cache.load("key")).rejects.toThrow("down");
  expect([cache.has("key"), cache.peek("key"), [...cache].length]).toEqual([false, undefined, 0]);
  await clock.advance(1);
  const second = cache.load("key");
  loads[1]?.resolve("old");
  await expect(second).resolves.toBe("old");
  await clock.advance(1_000);
  const third = cache.load("key");
  loads[2]?.reject(new Error("down again"));
  await expect(third).resolves.toBe("old");
  await clock.advance(49);
  await expect(cache.load("key")).resolves.toBe("old");
  expect(loads).toHaveLength(3);
  await clock.advance(1);
  void cache.load("key");
  expect(loads).toHaveLength(4);
});

it("never takes a failure for stale: when its time is over, who asks waits for a new load", async () => {
  const { cache, clock, loads } = stage({ staleMs: 500, failureTtlMs: 50 });
  const first = cache.load("key");
  loads[0]?.reject("down");
  await expect(first).rejects.toBe("down");
  await clock.advance(50);
  const second = cache.load("key");
  loads[1]?.resolve("value");
  await expect(second).resolves.toBe("value");
});

it("makes each caller of a failure that is kept hear of it", async () => {
  const unhandled = vi.fn<(error: unknown) => void>();
  const { cache, loads } = stage({ failureTtlMs: 50 });
  const first = cache.load("key");
  loads[0]?.reject("down");
  await expect(first).rejects.toBe("down");
  process.on("unhandledRejection", unhandled);
  void cache.load("key"); // nobody looks at this one
  await turn();
  process.off("unhandledRejection", unhandled);
  expect(unhandled.mock.calls.map(([error]) => error)).toEqual(["down"]);
});

it("loads a value that is in use anew before its end, and one that is not in use not at all", async () => {
  const { cache, clock, loads } = stage({ refreshAhead: 0.2 });
  await fill(cache, loads, "old");
  await clock.advance(799);
  await cache.load("key");
  expect(loads).toHaveLength(1);
  await clock.advance(1);
  await expect(cache.load("key")).resolves.toBe("old");
  await expect(cache.load("key")).resolves.toBe("old");
  expect(loads).toHaveLength(2);
  expect(loads[1]?.stale).toBe("old");
  loads[1]?.resolve("new");
  await turn();
  await clock.advance(799);
  await expect(cache.load("key")).resolves.toBe("new");
  expect(loads).toHaveLength(2);
});

it("never aborts a load in the background, though a caller who joined it leaves", async () => {
  const { cache, clock, loads } = stage({ staleMs: 10 });
  await fill(cache, loads, "old");
  await clock.advance(1_005);
  await cache.load("key");
  await clock.advance(5); // too old now: who comes must wait for that load
  const call = new AbortController();
  const joins = cache.load("key", { signal: call.signal });
  call.abort();
  await expect(joins).rejects.toBe(call.signal.reason);
  expect(loads).toHaveLength(2);
  expect(loads[1]?.signal.aborted).toBe(false);
  loads[1]?.resolve("new");
  await turn();
  expect(cache.peek("key")).toBe("new");
});

it("forgets what was not used for idleMs, and keeps what is used", async () => {
  const { cache, clock, loads } = stage({ idleMs: 100 });
  await fill(cache, loads, "value");
  for (let read = 0; read < 9; read += 1) {
    await clock.advance(99);
    await expect(cache.load("key")).resolves.toBe("value");
  }
  expect(loads).toHaveLength(1);
  await clock.advance(100);
  expect(cache.has("key")).toBe(false);
});

it("lets the load and whoever sets a value say for how long it may be idle", async () => {
  const clock = new VirtualClock();
  const cache = new Cache((key: number, context) => (context.idleMs = key), {
    maxEntries: 10,
    clock,
    freshness: freshness({ idleMs: 100 }),
  });
  await cache.load(200);
  cache.set(50, 50, { idleMs: 50 });
  cache.set(100, 100);
  const kept: number[][] = [];
  for (let ms = 0; ms < 200; ms += 50) {
    await clock.advance(49);
    kept.push([...cache].map(([key]) => key));
    await clock.advance(1);
  }
  expect([kept, [...cache]]).toEqual([[[200, 50, 100], [200, 100], [200], [200]], []]);
  expect(() => cache.set(1, 1, { idleMs: -1 })).toThrow("idleMs must be >= 0, got -1");
});

it("never keeps what is used longer than its ttlMs", async () => {
  const { cache, clock, loads } = stage({ idleMs: 300 });
  await fill(cache, loads, "value");
  for (let read = 0; read < 4; read += 1) {
    await clock.advance(249);
    await cache.load("key");
  }
  await clock.advance(4);
  expect(cache.has("key")).toBe(false);
});

it("gives out no stale value that was idle for too long", async () => {
  const { cache, clock, loads } = stage({ idleMs: 200, staleMs: 5_000 });
  await fill(cache, loads, "old");
  await clock.advance(200);
  void cache.load("key");
  expect(cache.peek("key")).toBeUndefined();
});

it("keeps that there is nothing for a time of its own", async () => {
  const { cache, clock, loads } = stage({ absentTtlMs: 50 });
  for (const nothing of [undefined, null]) {
    const read = cache.load("none");
    loads.at(-1)?.resolve(nothing as never);
    await expect(read).resolves.toBe(nothing);
    expect(cache.has("none")).toBe(true);
    await clock.advance(50);
    expect(cache.has("none")).toBe(false);
  }
  await fill(cache, loads, "value");
  await clock.advance(51);
  expect(cache.has("key")).toBe(true);
});

it("spreads the ends of what was kept together by up to the jitter, as the random numbers say", async () => {
  const found = await ends(7);
  expect(found.slice(0, 81)).toEqual(Array.from({ length: 81 }, () => 200));
  expect(found[90]).toBeGreaterThan(60);
  expect(found[90]).toBeLessThan(140);
  expect(found[100]).toBe(0);
  expect(await ends(7)).toEqual(found);
  expect(await ends(8)).not.toEqual(found);
});

it("lets an invalidation beat a load in the background, and what failed in it", async () => {
  for (const settle of ["resolve", "reject"] as const) {
    const { cache, clock, loads } = stage({ staleMs: 100, failureTtlMs: 1_000 });
    await fill(cache, loads, "old");
    await clock.advance(1_050);
    await cache.load("key");
    cache.delete("key");
    loads[1]?.[settle]("late");
    await turn();
    expect([cache.has("key"), cache.size]).toEqual([false, 0]);
  }
});

it("serves on and loads later when the loader itself throws in the background", async () => {
  const clock = new VirtualClock();
  let calls = 0;
  const load = (): string => {
    calls += 1;
    if (calls > 1) throw new Error("thrown");
    return "old";
  };
  const cache = new Cache(load, { maxEntries: 1, ttlMs: 10, clock, freshness: freshness({ staleMs: 100 }) });
  await cache.load("key");
  await clock.advance(10);
  await expect(cache.load("key")).resolves.toBe("old");
  await turn();
  await expect(cache.load("key")).resolves.toBe("old");
  expect(calls).toBe(3);
});

it("tells of no eviction when a failure is forgotten, since nothing of value was", async () => {
  const told: Eviction<string, string>[] = [];
  const clock = new VirtualClock();
  const cache = new Cache<string, string>(() => Promise.reject(new Error("down")), {
    maxEntries: 1,
    clock,
    onEvict: (eviction) => void told.push(eviction),
    freshness: freshness({ failureTtlMs: 10 }),
  });
  await expect(cache.load("a")).rejects.toThrow("down");
  cache.set("a", "value");
  await turn();
  expect(told).toEqual([]);
});

it("lets an onError that throws surface, and serves on", async () => {
  const unhandled = vi.fn<(error: unknown) => void>();
  process.on("unhandledRejection", unhandled);
  const fault = new Error("of onError");
  const { cache, clock, loads } = stage({
    staleMs: 1_000,
    onError() {
      throw fault;
    },
  });
  await fill(cache, loads, "old");
  await clock.advance(1_000);
  await cache.load("key");
  loads[1]?.reject("down");
  await turn();
  process.off("unhandledRejection", unhandled);
  expect(unhandled.mock.calls.map(([error]) => error)).toEqual([fault]);
  await expect(cache.load("key")).resolves.toBe("old");
});

it("refuses bad options by name, rule and value", () => {
  expect(() => freshness({ staleMs: -1 })).toThrow("staleMs must be >= 0, got -1");
  expect(() => freshness({ refreshAhead: 1 })).toThrow("refreshAhead must be below 1, got 1");
  expect(() => freshness({ jitter: -0.1 })).toThrow("jitter must be finite and >= 0, got -0.1");
  expect(() => freshness({ idleMs: "1" as never })).toThrow("idleMs must be a number, got string");
  expect(() => freshness({ onError: 1 as never })).toThrow("onError must be a function, got number");
  expect(() => freshness({ random: 1 as never })).toThrow("random must be a function, got number");
});

/** How many of 200 values that were kept together are there at every tenth millisecond. */
async function ends(seed: number): Promise<number[]> {
  const clock = new VirtualClock();
  const rules = freshness({ jitter: 0.2, random: seededRandom(seed) });
  const cache = new Cache((key: number) => key, { maxEntries: 200, ttlMs: 1_000, clock, freshness: rules });
  for (let key = 0; key < 200; key += 1) cache.set(key, key);
  const found: number[] = [];
  for (let ms = 0; ms <= 1_000; ms += 10) {
    found.push([...cache].length);
    await clock.advance(10);
  }
  return found;
}

interface Load {
  readonly signal: AbortSignal;
  readonly stale: string | undefined;
  resolve(value: string): void;
  reject(reason: unknown): void;
}

interface Stage {
  readonly cache: Cache<string, string>;
  readonly clock: VirtualClock;
  readonly loads: Load[];
}

/** Values are fresh for a second; loads are settled by hand. */
function stage(options: FreshnessOptions): Stage {
  const clock = new VirtualClock();
  const loads: Load[] = [];
  const cache = new Cache<string, string>(
    (_, context) =>
      new Promise((resolve, reject) => {
        loads.push({ stale: context.stale, signal: context.signal, resolve, reject });
      }),
    { maxEntries: 10, ttlMs: 1_000, clock, freshness: freshness(options) },
  );
  return { cache, clock, loads };
}

async function fill(cache: Cache<string, string>, loads: readonly Load[], value: string): Promise<void> {
  const load = cache.load("key");
  loads.at(-1)?.resolve(value);
  await load;
}
