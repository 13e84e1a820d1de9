import { expect, it } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import type { Eviction } from "./cache-options.ts";
import { Cache } from "./cache.ts";
import { freshness } from "./freshness.ts";

interface Page {
  readonly tenant: string;
  readonly id: number;
}

function pages(options: { readonly onEvict?: (eviction: Eviction<Page, string>) => void } = {}): {
  readonly cache: Cache<Page, string>;
  readonly loaded: Page[];
} {
  const loaded: Page[] = [];
  const load = (page: Page): string => {
    loaded.push(page);
    return `${page.tenant} ${page.id}`;
  };
  return {
    cache: new Cache(load, { maxEntries: 2, keyOf: ({ tenant, id }) => `${tenant}/${id}`, ...options }),
    loaded,
  };
}

it("takes keys for the same that keyOf makes the same, and hands the loader and others the key as it was asked for", async () => {
  const evictions: Eviction<Page, string>[] = [];
  const { cache, loaded } = pages({ onEvict: (eviction) => void evictions.push(eviction) });
  const first = { tenant: "red", id: 1 };
  await expect(cache.load(first)).resolves.toBe("red 1");
  await expect(cache.load({ tenant: "red", id: 1 })).resolves.toBe("red 1");
  expect(loaded).toEqual([first]);
  expect([cache.has({ tenant: "red", id: 1 }), cache.peek({ tenant: "red", id: 2 })]).toEqual([true, undefined]);
  expect([...cache]).toEqual([[first, "red 1"]]);
  cache.set({ tenant: "red", id: 1 }, "new");
  expect(cache.size).toBe(1);
  expect(cache.delete({ tenant: "red", id: 1 })).toBe(true);
  await Promise.resolve();
  expect(evictions).toEqual([
    { key: first, value: "red 1", reason: "replaced" },
    { key: first, value: "new", reason: "deleted" },
  ]);
});

it("takes back without probation what comes back soon, also by keyOf", async () => {
  const { cache } = pages();
  for (const id of [1, 2, 3, 1]) await cache.load({ tenant: "red", id });
  cache.set({ tenant: "blue", id: 9 }, "on probation");
  cache.set({ tenant: "blue", id: 8 }, "on probation");
  expect(cache.has({ tenant: "red", id: 1 })).toBe(true);
});

it("rejects with what keyOf throws, and begins nothing", async () => {
  const cache = new Cache((key: string) => key.length, { maxEntries: 2, keyOf: refuse });
  await expect(cache.load("a")).rejects.toThrow("no key");
  expect(() => cache.set("a", 1)).toThrow("no key");
  expect(cache.stats()).toMatchObject({ entries: 0, loads: 0, misses: 0 });
});

it("forgets a group of keys with what is being loaded for them, which its callers get, and nothing else", async () => {
  const answers = new Map<string, (value: string) => void>();
  const cache = new Cache((key: string) => new Promise<string>((resolve) => answers.set(key, resolve)), {
    maxEntries: 10,
  });
  for (const key of ["red 1", "red 2", "blue 1"]) cache.set(key, "old");
  const loading = [cache.load("red 3"), cache.load("blue 2")];
  expect(cache.deleteWhere((key) => key.startsWith("red"))).toBe(2);
  for (const answer of answers.values()) answer("late");
  await expect(Promise.all(loading)).resolves.toEqual(["late", "late"]);
  expect([...cache].map(([key]) => key).toSorted()).toEqual(["blue 1", "blue 2"]);
  expect(cache.stats()).toMatchObject({ deleted: 2, loading: 0 });
});

it("throws what the predicate throws, and has forgotten those for which it had answered", () => {
  const cache = new Cache((key: number) => key, { maxEntries: 10 });
  for (const key of [1, 2, 3]) cache.set(key, key);
  expect(() => cache.deleteWhere(isNotTwo)).toThrow("no answer");
  expect([...cache]).toEqual([
    [2, 2],
    [3, 3],
  ]);
});

it("leaves what the predicate has set meanwhile in the place of what it was asked about", async () => {
  const cache = new Cache((key: number) => key, { maxEntries: 10 });
  cache.set(1, 1);
  let asked = 0;
  const isFirst = (key: number): boolean => {
    if (asked > 0) return false;
    asked += 1;
    cache.delete(key);
    cache.set(key, 2);
    return true;
  };
  expect(cache.deleteWhere(isFirst)).toBe(0);
  expect([cache.size, ...cache]).toEqual([1, [1, 2]]);
});

it("tells onError which key failed, as it was asked for", async () => {
  const told: unknown[][] = [];
  const clock = new VirtualClock();
  const key = { tenant: "red", id: 1 };
  let isDown = false;
  const load = (page: Page): string => {
    if (isDown) throw new Error("down");
    return page.tenant;
  };
  const cache = new Cache(load, {
    maxEntries: 2,
    keyOf: ({ id }) => id,
    ttlMs: 10,
    clock,
    freshness: freshness({ staleOnErrorMs: 100, onError: (error, page) => void told.push([error, page]) }),
  });
  await cache.load(key);
  isDown = true;
  await clock.advance(10);
  await expect(cache.load({ ...key })).resolves.toBe("red");
  await Promise.resolve();
  expect(told).toEqual([[new Error("down"), key]]);
  expect(told[0]?.[1]).toBe(key);
});

function isNotTwo(key: number): boolean {
  if (key === 2) throw new Error("no answer");
  return true;
}

function refuse(): never {
  throw new Error("no key");
}
