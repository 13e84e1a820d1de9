import * as fc from "fast-check";
import { expect, it } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { RateLimiter } from "./rate-limiter.ts";
import { slidingWindowCounter } from "./sliding-window-counter.ts";

const PER_MS = 100;
const PARTS = 4;

const steps = fc.array(fc.record({ afterMs: fc.integer({ min: 0, max: 60 }), cost: fc.integer({ min: 1, max: 3 }) }), {
  maxLength: 60,
});

it("C115: lets no span of 1,000 ms hold more than 10 starts, also around the border of a window", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ rule: slidingWindowCounter({ count: 10, perMs: 1_000 }), clock });
  const starts = [0];
  expect(limiter.tryTake()).toBe(true);
  await clock.advance(990);
  for (let call = 0; call < 20; call += 1) void limiter.take().then(() => starts.push(clock.now()));
  await clock.advance(5_000);
  expect(starts).toEqual([
    0,
    ...Array.from({ length: 9 }, () => 990),
    1_100,
    ...Array.from({ length: 9 }, () => 2_000),
    2_200,
  ]);
});

it("lets no span hold more than its count, and refuses nothing that a part more than the span has room for", () => {
  const property = fc.property(fc.integer({ min: 3, max: 6 }), steps, (count, plan) => {
    const rule = slidingWindowCounter({ count, perMs: PER_MS, parts: PARTS });
    const starts: number[] = [];
    const within = (spanMs: number, now: number): number => starts.filter((at) => at > now - spanMs).length;
    let now = 0;
    for (const { afterMs, cost } of plan) {
      now += afterMs;
      const turnAt = rule.turnAt(cost, now, 0);
      if (within(PER_MS, now) + cost > count) expect(turnAt).toBeGreaterThan(now);
      if (within(PER_MS + PER_MS / PARTS, now) + cost <= count) expect(turnAt).toBe(now);
      if (turnAt > now) {
        expect(rule.turnAt(cost, turnAt, 0)).toBe(turnAt);
        expect(rule.turnAt(cost, turnAt - 1, 0)).toBe(turnAt);
        continue;
      }
      rule.take(cost, now);
      for (let start = 0; start < cost; start += 1) starts.push(now);
    }
  });
  fc.assert(property, { numRuns: 1_000 });
});

it("never tells one of a long line that its turn comes later than it does", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ rule: slidingWindowCounter({ count: 3, perMs: PER_MS, parts: PARTS }), clock });
  for (const pauseMs of [10, 35]) {
    limiter.tryTake();
    await clock.advance(pauseMs);
  }
  const places = Array.from({ length: 20 }, () => limiter.reserve());
  const came: number[] = [];
  for (const { ready } of places) void ready.then(() => came.push(clock.now()));
  await clock.advance(2_000);
  for (const [index, { readyAt }] of places.entries()) expect(readyAt).toBeLessThanOrEqual(came[index] ?? 0);
  expect(places.map(({ readyAt }) => readyAt).slice(0, 4)).toEqual(came.slice(0, 4));
});

it("has forgotten what was given back, also by a clock that has gone on since", () => {
  const rule = slidingWindowCounter({ count: 5, perMs: PER_MS, parts: PARTS });
  rule.take(2, 10);
  rule.take(3, 40);
  expect(rule.turnAt(1, 40, 0)).toBe(125);
  rule.giveBack(1, 60, 60);
  expect([rule.turnAt(1, 60, 0), rule.turnAt(2, 60, 0), rule.turnAt(4, 60, 0)]).toEqual([60, 125, 150]);
  rule.giveBack(4, 60, 60);
  expect(rule.turnAt(5, 60, 0)).toBe(60);
});

it("C119: has no debt after its count was lowered, and counts what there was by a window of another length", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ rule: slidingWindowCounter({ count: 1_000, perMs: 1_000 }), clock });
  await clock.advance(450);
  limiter.tryTake(1_000);
  limiter.setRate({ count: 10, perMs: 1_000 });
  expect(limiter.retryAfterMs(10)).toBe(1_050);
  limiter.setRate({ count: 1_010, perMs: 2_000 });
  expect([limiter.retryAfterMs(10), limiter.retryAfterMs(11)]).toEqual([0, 2_150]);
  await clock.advance(2_150);
  expect([limiter.tryTake(1_010), limiter.tryTake()]).toEqual([true, false]);
});

it("is right after a pause of any length", () => {
  const rule = slidingWindowCounter({ count: 2, perMs: PER_MS, parts: PARTS });
  rule.take(2, 10);
  for (const at of [1_000, 1e9, 1e12]) {
    expect(rule.turnAt(2, at, 0)).toBe(at);
    rule.take(2, at);
    expect(rule.turnAt(1, at, 0)).toBeGreaterThan(at);
  }
});

it("refuses what is no limit", () => {
  for (const bad of [{ count: 0 }, { perMs: 0 }, { parts: 0 }, { parts: 1.5 }])
    expect(() => slidingWindowCounter({ count: 1, perMs: 1, ...bad })).toThrow(RangeError);
});
