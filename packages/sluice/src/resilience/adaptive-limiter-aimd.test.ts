import { expect, it } from "vitest";
import { aimd } from "./adaptive-limiter-aimd.ts";
import type { LimitRule, LimitSample } from "./adaptive-limiter-options.ts";

function sample(startedAt: number, endedAt: number, more: Partial<LimitSample> = {}): LimitSample {
  return { startedAt, endedAt, running: 10, isOverload: false, ...more };
}

/** The limit after so many calls that go well. */
function climb(rule: LimitRule, from: number, calls: number, more: Partial<LimitSample> = {}): number {
  let limit = from;
  for (let call = 0; call < calls; call += 1) limit = rule.next(limit, sample(0, 1, more));
  return limit;
}

it("adds one place for each round of calls that goes well", () => {
  expect(climb(aimd()(), 10, 10)).toBeCloseTo(11, 0);
  expect(climb(aimd({ increase: 3 })(), 10, 10)).toBeGreaterThan(12.5);
});

it("takes a tenth away at a failure or a call that takes too long, and not twice for what one limit let in", () => {
  const rule = aimd({ maxLatencyMs: 50 })();
  expect(rule.next(10, sample(0, 20, { isOverload: true }))).toBe(9);
  expect(rule.next(9, sample(5, 60))).toBe(9); // from before
  expect(rule.next(9, sample(20, 70))).toBeGreaterThan(9);
  expect(rule.next(9, sample(20, 71))).toBeCloseTo(8.1);
  expect(rule.next(8, sample(30, 99, { isOverload: true }))).toBe(8);
  expect(aimd({ decrease: 0.5 })().next(10, sample(0, 1, { isOverload: true }))).toBe(5);
});

it("adds nothing while less than half of the limit is used", () => {
  expect(climb(aimd()(), 10, 1_000, { running: 4 })).toBe(10);
  expect(climb(aimd()(), 10, 1_000, { running: 5 })).toBe(10.1);
});

it("remembers for one limiter only", () => {
  const strategy = aimd();
  const [one, other] = [strategy(), strategy()];
  one.next(10, sample(0, 20, { isOverload: true }));
  expect(other.next(10, sample(0, 20, { isOverload: true }))).toBe(9);
});

it.each([
  [{ maxLatencyMs: -1 }, "maxLatencyMs must be >= 0, got -1"],
  [{ increase: 0 }, "increase must be finite and >= 5e-324, got 0"],
  [{ decrease: -1 }, "decrease must be finite and >= 0, got -1"],
  [{ decrease: 1.1 }, "decrease must be <= 1, got 1.1"],
])("refuses %j", (options, why) => {
  expect(() => aimd(options)).toThrow(why);
});
