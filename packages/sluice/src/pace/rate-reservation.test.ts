import * as fc from "fast-check";
import { expect, it } from "vitest";
import { RateLimitedError } from "../errors.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { allRules, tokenBucket } from "./all-rules.ts";
import { KeyedRateLimiter } from "./keyed-rate-limiter.ts";
import { RateLimiter, type RateReservation } from "./rate-limiter.ts";
import { slidingWindowCounter } from "./sliding-window-counter.ts";
import { slidingWindowLog } from "./sliding-window-log.ts";

interface Subject {
  readonly limiter: { stats(): object };
  readonly reserve: (cost?: number) => RateReservation;
  readonly retryAfterMs: (cost?: number) => number;
}

const LIMIT = { count: 100, perMs: 1_000, burst: 50 }; // a token every 10 ms

const subjects: readonly [name: string, make: (clock: VirtualClock) => Subject][] = [
  [
    "RateLimiter",
    (clock) => {
      const limiter = new RateLimiter({ ...LIMIT, clock });
      return {
        limiter,
        reserve: (cost) => limiter.reserve(cost),
        retryAfterMs: (cost) => limiter.retryAfterMs(cost),
      };
    },
  ],
  [
    "KeyedRateLimiter",
    (clock) => {
      const limiter = new KeyedRateLimiter({ ...LIMIT, clock });
      return {
        limiter,
        reserve: (cost) => limiter.reserve("a", cost),
        retryAfterMs: (cost) => limiter.retryAfterMs("a", cost),
      };
    },
  ],
];

it.each(subjects)("%s: gives back what an estimate was too high by", (_, make) => {
  const { reserve, retryAfterMs } = make(new VirtualClock());
  const answer = reserve(50);
  expect([answer.waitMs, retryAfterMs(30)]).toEqual([0, 300]);
  expect([answer.settle(20), retryAfterMs(30), retryAfterMs(31)]).toEqual([true, 0, 10]);
});

it.each(subjects)("%s: takes what an estimate was too low by, for which others wait", async (_, make) => {
  const clock = new VirtualClock();
  const { reserve, retryAfterMs } = make(clock);
  expect(reserve(10).settle(70)).toBe(true);
  expect(retryAfterMs(1)).toBe(210);
  const next = reserve(1);
  const seen = next.ready.then(() => clock.now());
  expect(next.waitMs).toBe(210);
  await clock.runToIdle();
  expect(await seen).toBe(210);
});

it.each(subjects)("%s: settles or cancels once, and not before its turn", async (_, make) => {
  const clock = new VirtualClock();
  const { reserve, retryAfterMs } = make(clock);
  const [first, second, third] = [reserve(50), reserve(10), reserve(10)];
  expect([second.waitMs, second.settle(1), third.cancel(), third.settle(1)]).toEqual([100, false, true, false]);
  expect([first.settle(50), first.settle(0), first.cancel()]).toEqual([true, false, false]);
  await clock.advance(100);
  await second.ready;
  expect([second.settle(10), second.cancel(), retryAfterMs(50)]).toEqual([true, false, 500]);
  for (const used of [-1, 1.5, Number.NaN]) expect(() => first.settle(used)).toThrow(RangeError);
});

it.each(subjects)("%s: gives back once what is cancelled twice", (_, make) => {
  const { reserve, retryAfterMs } = make(new VirtualClock());
  const granted = [reserve(40), reserve(10)];
  expect([granted[1]?.cancel(), granted[1]?.cancel(), retryAfterMs(10), retryAfterMs(11)]).toEqual([
    true,
    false,
    0,
    10,
  ]);
});

it.each(subjects)("%s: gives back no more than had not flowed back meanwhile", async (_, make) => {
  const clock = new VirtualClock();
  const { reserve, retryAfterMs } = make(clock);
  const answer = reserve(50);
  await clock.advance(300); // 30 came back, 20 of them for what was used
  expect([answer.settle(20), retryAfterMs(50)]).toEqual([true, 0]);
  reserve(50);
  expect(retryAfterMs(1)).toBe(10);
});

it.each(subjects)("%s: wakes who waits when a reservation is settled for less", async (_, make) => {
  const clock = new VirtualClock();
  const { reserve } = make(clock);
  const [answer, next] = [reserve(50), reserve(30)];
  const seen = next.ready.then(() => clock.now());
  answer.settle(20);
  await clock.runToIdle();
  expect(await seen).toBe(0);
});

it("never lets more through by a settlement than if the real cost had been known", () => {
  const step = fc.record({
    estimate: fc.integer({ min: 1, max: 50 }),
    used: fc.nat(80),
    tookMs: fc.nat(900),
    thenMs: fc.nat(300),
  });
  const plans = fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (plan) => {
    const clock = new VirtualClock();
    const [settled, known] = [tokenBucket(LIMIT), tokenBucket(LIMIT)];
    const limiter = new RateLimiter({ rule: settled, clock });
    for (const { estimate, used, tookMs, thenMs } of plan) {
      const answer = limiter.reserve(estimate);
      await clock.advance(answer.waitMs);
      if (used > 0) known.take(used, clock.now());
      await clock.advance(tookMs);
      expect(answer.settle(used)).toBe(true);
      for (const cost of [1, 50])
        expect(settled.turnAt(cost, clock.now(), 0)).toBeGreaterThanOrEqual(known.turnAt(cost, clock.now(), 0));
      await clock.advance(thenMs);
    }
  });
  return fc.assert(plans, { numRuns: 500 });
});

it.each([
  ["a log", () => slidingWindowLog({ count: 10, perMs: 100 })],
  ["a counter", () => slidingWindowCounter({ count: 10, perMs: 100, parts: 10 })],
  ["several rules", () => allRules(slidingWindowLog({ count: 10, perMs: 100 }), tokenBucket({ ...LIMIT, burst: 50 }))],
])("settles by %s, either way", async (_, rule) => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ rule: rule(), clock });
  expect([limiter.reserve(8).settle(3), limiter.tryTake(7), limiter.tryTake()]).toEqual([true, true, false]);
  await clock.advance(1_000);
  expect([limiter.reserve(3).settle(10), limiter.tryTake()]).toEqual([true, false]);
});

it("reserves by key beside the line of the key, and turns away who is one too many", async () => {
  const clock = new VirtualClock();
  const limiter = new KeyedRateLimiter({ count: 1, perMs: 10, maxWaiting: 1, clock });
  const [now, later, other] = [limiter.reserve("a"), limiter.reserve("a"), limiter.reserve("b")];
  expect([now.waitMs, later.waitMs, other.waitMs, limiter.stats().waiting]).toEqual([0, 10, 0, 1]);
  expect(() => limiter.reserve("a")).toThrow(RateLimitedError);
  expect(() => limiter.reserve(1.5)).toThrow(TypeError);
  expect(() => limiter.reserve("a", 2)).toThrow(RangeError);
  await clock.advance(10);
  expect([later.cancel(), limiter.tryTake("a"), limiter.stats().granted, clock.timers]).toEqual([true, true, 3, 0]);
});

it("keeps no key for a reservation that is settled after its bucket was full again", async () => {
  const clock = new VirtualClock();
  const limiter = new KeyedRateLimiter({ ...LIMIT, clock });
  const answer = limiter.reserve("a", 50);
  await clock.advance(10_000);
  for (let look = 0; look < 100; look += 1) limiter.tryTake("b"); // which sweeps
  await clock.advance(10_000);
  expect([answer.settle(10), limiter.retryAfterMs("a", 50), limiter.stats().keys]).toEqual([true, 0, 1]);
});

it("tells all who wait when the clock, or the rule, fails in their timer, and goes on with those who come", async () => {
  const clock = new VirtualClock();
  const rule = tokenBucket({ count: 1, perMs: 10 });
  const take = rule.take.bind(rule);
  const limiter = new RateLimiter({ rule, clock });
  for (const part of ["now", "turnAt", "take", "setTimer"] as const) {
    await clock.advance(100);
    limiter.tryTake();
    const waits = [limiter.take(), limiter.take()].map((wait) => wait.catch((error: unknown) => error));
    const broken = new Error(part);
    const fail = (): never => {
      throw broken;
    };
    const timers = clock.setTimer.bind(clock);
    const now = clock.now.bind(clock);
    if (part === "turnAt") rule.turnAt = fail;
    else if (part === "take") rule.take = fail;
    else if (part === "setTimer") clock.setTimer = fail;
    const advanced = clock.advance(10);
    if (part === "now") clock.now = fail;
    await advanced;
    Object.assign(clock, { now, setTimer: timers });
    Object.assign(rule, { take, turnAt: Object.getPrototypeOf(rule).turnAt as typeof rule.turnAt });
    const ends = await Promise.all(waits);
    expect([ends.at(-1), ends.every((end) => end === undefined || end === broken)]).toEqual([broken, true]);
    expect([limiter.waiting, clock.timers]).toEqual([0, 0]);
  }
});
