import * as fc from "fast-check";
import { expect, it } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { BatchCache } from "./batch-cache.ts";
import { batch } from "./batch.ts";

it("keeps no more than maxEntries; what was not asked for since it came goes first", async () => {
  const cache = new BatchCache<number>({ maxEntries: 3 });
  for (const id of [1, 2, 3]) cache.set(id, Promise.resolve(id));
  await expect(cache.get(1)).resolves.toBe(1);
  cache.set(4, Promise.resolve(4));
  expect([1, 2, 3, 4].map((id) => cache.get(id) !== undefined)).toEqual([true, false, true, true]);
  cache.set(5, Promise.resolve(5)); // all have been asked for: the one that was considered longest ago
  expect([cache.size, cache.get(5) !== undefined]).toEqual([3, true]);
});

it("keeps nothing longer than ttlMs, counted from when its load began", async () => {
  const clock = new VirtualClock();
  const cache = new BatchCache<number>({ maxEntries: 10, ttlMs: 100, clock });
  let count = 0;
  const batcher = batch<string, number>((keys) => keys.map(() => (count += 1)), { cache });
  await expect(batcher.load("a")).resolves.toBe(1);
  await clock.advance(99);
  await expect(batcher.load("a")).resolves.toBe(1);
  await clock.advance(1);
  await expect(batcher.load("a")).resolves.toBe(2);
  expect([cache.size, batcher.stats().hits]).toEqual([1, 1]);
});

it("forgets one or all, and replaces what is set again", async () => {
  const cache = new BatchCache<number>({ maxEntries: 2 });
  for (const id of [1, 2, 2]) cache.set(id, Promise.resolve(id * 10));
  expect(await cache.get(1)).toBe(10); // replacing 2 has pushed nothing out
  cache.set(1, Promise.resolve(11));
  expect([cache.size, await cache.get(1), await cache.get(2)]).toEqual([2, 11, 20]);
  cache.delete(1);
  expect([cache.size, cache.get(1)]).toEqual([1, undefined]);
  cache.clear();
  expect(cache.size).toBe(0);
});

it("has what was set last for an id, or nothing, and never too much, under any plan", () => {
  const step = fc.record({ act: fc.constantFrom("set", "set", "get", "delete", "10 ms"), id: fc.nat({ max: 5 }) });
  return fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 4 }), async (plan, maxEntries) => {
      const clock = new VirtualClock();
      const cache = new BatchCache<number>({ maxEntries, ttlMs: 25, clock });
      const last = new Map<number, { readonly load: Promise<number>; readonly at: number }>();
      for (const [index, { act, id }] of plan.entries()) {
        if (act === "set") {
          const load = Promise.resolve(index);
          cache.set(id, load);
          last.set(id, { load, at: clock.now() });
          expect(cache.get(id)).toBe(load);
        } else if (act === "delete") {
          cache.delete(id);
          last.delete(id);
        } else if (act === "10 ms") await clock.advance(10);
        else {
          const entry = last.get(id);
          const found = cache.get(id);
          if (found !== undefined) expect([found, clock.now() - (entry?.at ?? 0) < 25]).toEqual([entry?.load, true]);
        }
        expect(cache.size).toBeLessThanOrEqual(maxEntries);
      }
    }),
    { numRuns: 200 },
  );
});

it("refuses what it can't use", () => {
  expect(() => new BatchCache({ maxEntries: 0 })).toThrow("maxEntries must be an integer >= 1, got 0");
  expect(() => new BatchCache({ maxEntries: 1, ttlMs: -1 })).toThrow(RangeError);
});
