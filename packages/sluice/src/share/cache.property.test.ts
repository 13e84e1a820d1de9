import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Cache } from "./cache.ts";
import { freshness } from "./freshness.ts";

const ACTS = [
  "load",
  "load",
  "load",
  "leave",
  "hurry",
  "land",
  "land",
  "crash",
  "set",
  "delete",
  "clear",
  "abort",
  "time",
] as const;

interface Step {
  readonly act: (typeof ACTS)[number];
  readonly key: number;
}

interface Load {
  readonly land: () => void;
  readonly crash: () => void;
}

const step = fc.record({ act: fc.constantFrom(...ACTS), key: fc.nat({ max: 4 }) });
const plan = fc.array(step, { maxLength: 60 });

it("keeps I1 to I3, gives nobody what was invalidated before, and settles every call, under any plan", () => {
  return fc.assert(fc.asyncProperty(plan, fc.boolean(), play), { numRuns: 500 });
});

/** Every value is the number of the act that made it, so that a later one is greater. */
async function play(steps: readonly Step[], isStaleAllowed: boolean): Promise<void> {
  const clock = new VirtualClock();
  const loads: Load[] = [];
  let number = 0;
  const cache = new Cache<number, number>(
    () => {
      const started = (number += 1);
      return new Promise((resolve, reject) => {
        loads.push({ land: () => resolve(started), crash: () => reject(new Error("crash")) });
      });
    },
    {
      maxEntries: 3,
      maxWeight: 5,
      weigh: (_, key) => key % 3,
      ttlMs: 50,
      clock,
      freshness: freshness(
        isStaleAllowed ? { staleMs: 20, staleOnErrorMs: 40, failureTtlMs: 5, refreshAhead: 0.2 } : {},
      ),
    },
  );
  const invalidatedAt = new Map<number, number>();
  const calls: Promise<unknown>[] = [];
  let waiting = 0;
  let caller = new AbortController();
  const call = (key: number, options?: { signal?: AbortSignal; timeoutMs?: number }): void => {
    const since = invalidatedAt.get(key) ?? 0;
    if (options?.signal !== undefined) waiting += 1;
    const load = cache.load(key, options).finally(() => void (options?.signal !== undefined && (waiting -= 1)));
    const check = (value: number): void => expect(value).toBeGreaterThan(since - 1);
    calls.push(
      load.then(check, (error: Error) => expect(["crash", "gone", "timed out after 10 ms"]).toContain(error.message)),
    );
  };
  for (const { act, key } of [...steps, { act: "abort", key: 0 } as const]) {
    if (act === "load") call(key);
    else if (act === "leave") call(key, { signal: caller.signal });
    else if (act === "hurry") call(key, { timeoutMs: 10 });
    else if (act === "land") loads.shift()?.land();
    else if (act === "crash") loads.shift()?.crash();
    else if (act === "set") {
      invalidatedAt.set(key, (number += 1));
      cache.set(key, number);
    } else if (act === "delete") {
      invalidatedAt.set(key, (number += 1));
      cache.delete(key);
    } else if (act === "clear") {
      for (let each = 0; each <= 4; each += 1) invalidatedAt.set(each, (number += 1));
      cache.clear();
    } else if (act === "abort") {
      caller.abort(new Error("gone"));
      caller = new AbortController();
    } else await clock.advance(10);
    await turn();
    const { entries, weight, loading } = cache.stats();
    expect([entries <= 3, weight <= 5, loading <= 5]).toEqual([true, true, true]); // I1, I3
    expect(getEventListeners(caller.signal, "abort").length).toBe(waiting > 0 ? 1 : 0);
    for (const [each, value] of cache) expect(value).toBeGreaterThanOrEqual(invalidatedAt.get(each) ?? 0); // I2
  }
  for (const { land } of loads) land();
  await turn();
  await Promise.all(calls);
  await clock.advance(10);
  expect([cache.stats().loading, clock.timers]).toEqual([0, 0]);
}
