import * as fc from "fast-check";
import { expect, it } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { RateLimiter } from "./rate-limiter.ts";
import { slidingWindowLog } from "./sliding-window-log.ts";

const PER_MS = 100;

const plans = fc.array(fc.record({ afterMs: fc.integer({ min: 0, max: 60 }), cost: fc.integer({ min: 1, max: 3 }) }), {
  maxLength: 60,
});

it("C115: lets no span of 1,000 ms hold more than 10 starts, also around the border of a window", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ rule: slidingWindowLog({ count: 10, perMs: 1_000 }), clock });
  const starts = [0];
  expect(limiter.tryTake()).toBe(true);
  await clock.advance(990);
  for (let call = 0; call < 20; call += 1) void limiter.take().then(() => starts.push(clock.now()));
  await clock.advance(5_000);
  expect(starts).toEqual([
    0,
    ...Array.from({ length: 9 }, () => 990),
    1_000,
    ...Array.from({ length: 9 }, () => 1_990),
    2_000,
  ]);
});

it("decides as a list of all starts does, and names the first instant at which it would allow the call", () => {
  const property = fc.property(fc.integer({ min: 3, max: 6 }), plans, (count, plan) => {
    const rule = slidingWindowLog({ count, perMs: PER_MS });
    const starts: number[] = [];
    const isAllowed = (cost: number, now: number): boolean =>
      starts.filter((at) => at > now - PER_MS).length + cost <= count;
    let now = 0;
    for (const { afterMs, cost } of plan) {
      now += afterMs;
      const turnAt = rule.turnAt(cost, now, 0);
      expect(turnAt <= now).toBe(isAllowed(cost, now));
      if (turnAt > now) expect([isAllowed(cost, turnAt), isAllowed(cost, turnAt - 1)]).toEqual([true, false]);
      else {
        rule.take(cost, now);
        for (let start = 0; start < cost; start += 1) starts.push(now);
      }
    }
  });
  fc.assert(property, { numRuns: 1_000 });
});

it("tells each of a long line when its turn comes", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ rule: slidingWindowLog({ count: 3, perMs: PER_MS }), clock });
  for (const pauseMs of [10, 25]) {
    limiter.tryTake();
    await clock.advance(pauseMs);
  }
  const places = Array.from({ length: 20 }, () => limiter.reserve());
  const came: number[] = [];
  for (const { ready } of places) void ready.then(() => came.push(clock.now()));
  await clock.advance(2_000);
  expect(came).toEqual(places.map(({ readyAt }) => readyAt));
});

it("has forgotten what was given back, and nothing else", () => {
  const property = fc.property(plans, fc.nat(), (plan, which) => {
    const rule = slidingWindowLog({ count: 5, perMs: PER_MS });
    const taken: { readonly cost: number; readonly at: number }[] = [];
    let now = 0;
    for (const { afterMs, cost } of plan) {
      now += afterMs + 1;
      if (rule.turnAt(cost, now, 0) > now) continue;
      rule.take(cost, now);
      taken.push({ cost, at: now });
    }
    const [gone] = taken.splice(which % Math.max(1, taken.length), 1);
    if (gone !== undefined) rule.giveBack(gone.cost, gone.at, now);
    const other = slidingWindowLog({ count: 5, perMs: PER_MS });
    for (const { cost, at } of taken) other.take(cost, at);
    // Of what has left the window before, no more is known than that it has.
    for (const cost of [1, 2, 3, 4, 5]) expect(rule.turnAt(cost, now, 0)).toBe(other.turnAt(cost, now, 0));
  });
  fc.assert(property);
});

it("C119: has no debt after its count was lowered, and no gift after it was raised", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ rule: slidingWindowLog({ count: 1_000, perMs: 1_000 }), clock });
  limiter.tryTake(1_000);
  limiter.setRate({ count: 10, perMs: 1_000 });
  expect(limiter.retryAfterMs(10)).toBe(1_000);
  limiter.setRate({ count: 12, perMs: 1_000 });
  expect([limiter.tryTake(2), limiter.tryTake()]).toEqual([true, false]);
  await clock.advance(1_000);
  expect([limiter.tryTake(12), limiter.tryTake()]).toEqual([true, false]);
});

it("refuses what is no limit", () => {
  expect(() => slidingWindowLog({ count: 0, perMs: 1 })).toThrow(RangeError);
  expect(() => slidingWindowLog({ count: 1, perMs: 0 })).toThrow(RangeError);
});
