import * as fc from "fast-check";
import { expect, it } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { allRules, tokenBucket } from "./all-rules.ts";
import { RateLimiter } from "./rate-limiter.ts";
import type { RateRule } from "./rate-rule.ts";
import { slidingWindowLog } from "./sliding-window-log.ts";

it("holds all limits at once, and charges none of them for what another refuses", async () => {
  const clock = new VirtualClock();
  const [second, hour] = [
    tokenBucket({ count: 5, perMs: 1_000, burst: 5 }),
    slidingWindowLog({ count: 8, perMs: 3_600_000 }),
  ];
  const limiter = new RateLimiter({ rule: allRules(second, hour), clock });
  const taken = Array.from({ length: 10 }, () => limiter.tryTake());
  expect(taken.filter(Boolean).length).toBe(5);
  expect(hour.turnAt(3, clock.now(), 0)).toBe(0);
  await clock.advance(1_000);
  expect(Array.from({ length: 10 }, () => limiter.tryTake()).filter(Boolean).length).toBe(3);
  expect(second.turnAt(2, clock.now(), 0)).toBe(1_000);
  expect(limiter.retryAfterMs()).toBe(3_599_000);
});

it("serves a line by the tightest of its limits", async () => {
  const clock = new VirtualClock();
  const limits = [tokenBucket({ count: 10, perMs: 1_000 }), slidingWindowLog({ count: 3, perMs: 1_000 })];
  const limiter = new RateLimiter({ rule: allRules(...limits), clock });
  const starts: number[] = [];
  for (let call = 0; call < 5; call += 1) void limiter.take().then(() => starts.push(clock.now()));
  await clock.advance(2_000);
  expect(starts).toEqual([0, 100, 200, 1_000, 1_100]);
});

it("gives back to all of them", async () => {
  const limits = [tokenBucket({ count: 1, perMs: 1_000, burst: 3 }), slidingWindowLog({ count: 3, perMs: 1_000 })];
  const limiter = new RateLimiter({ rule: allRules(...limits), clock: new VirtualClock() });
  limiter.reserve(3).cancel();
  expect(limiter.retryAfterMs(3)).toBe(0);
});

it("allows at the instant that it names, and not before", () => {
  const steps = fc.array(fc.record({ afterMs: fc.integer({ min: 0, max: 60 }), cost: fc.integer({ min: 1, max: 3 }) }));
  const property = fc.property(steps, (plan) => {
    const [own, all] = [make(), allRules(...make())];
    let now = 0;
    for (const { afterMs, cost } of plan) {
      now += afterMs;
      const turnAt = all.turnAt(cost, now, 0);
      expect(turnAt <= now).toBe(own.every((rule) => rule.turnAt(cost, now, 0) <= now));
      expect(own.every((rule) => rule.turnAt(cost, turnAt, 0) <= turnAt)).toBe(true);
      if (turnAt > now) continue;
      for (const rule of [all, ...own]) rule.take(cost, now);
    }
  });
  fc.assert(property);
});

it("may take no more at once than each of them, has no rate of its own to set, and is of one at least", () => {
  const limiter = new RateLimiter({
    rule: allRules(tokenBucket({ count: 1, perMs: 1, burst: 3 }), tokenBucket({ count: 1, perMs: 1, burst: 2 })),
  });
  expect(() => limiter.tryTake(3)).toThrow("cost must be <= 2");
  expect(() => limiter.setRate({ count: 1, perMs: 1 })).toThrow(TypeError);
  expect(() => allRules()).toThrow(RangeError);
});

function make(): RateRule[] {
  return [tokenBucket({ count: 1, perMs: 20, burst: 3 }), slidingWindowLog({ count: 4, perMs: 100 })];
}
