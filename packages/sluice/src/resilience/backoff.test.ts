import * as fc from "fast-check";
import { expect, it } from "vitest";
import { backoffMs } from "./backoff.ts";

it("J37: draws from nothing up to a ceiling that doubles, from 100 ms to 10 s by default", () => {
  const ceilings = Array.from({ length: 9 }, (_, index) => backoffMs(index + 1, {}, () => 1));
  expect(ceilings).toEqual([100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
  expect(backoffMs(4, {}, () => 0)).toBe(0);
  expect(backoffMs(4, {}, () => 0.25)).toBe(200);
});

it("grows by the factor it is given, and not at all with 1", () => {
  const ceilings = [1, 10].map((factor) => [1, 2, 3].map((attempt) => backoffMs(attempt, { factor }, () => 1)));
  expect(ceilings).toEqual([
    [100, 100, 100],
    [100, 1_000, 10_000],
  ]);
});

it.each([8, 9, 400, 1_100])(
  "C079: is finite and within the cap after %d attempts, at both ends of the jitter",
  (attempt) => {
    const steep = { baseMs: 1_000, factor: 10, maxMs: Infinity };
    for (const random of [() => 0, () => 1]) {
      const uncapped = backoffMs(attempt, steep, random);
      expect(Number.isFinite(uncapped) && uncapped >= 0).toBe(true);
      expect(backoffMs(attempt, { ...steep, maxMs: 30_000 }, random)).toBe(random() * 30_000);
    }
    expect(backoffMs(attempt, { ...steep, baseMs: 0 }, () => 1)).toBe(0);
  },
);

it("is never below 0 nor above its ceiling, whatever the options", () => {
  const options = fc.record({
    baseMs: fc.double({ min: 0, max: Number.MAX_VALUE, noNaN: true }),
    maxMs: fc.double({ min: 0, max: Infinity, noNaN: true }),
    factor: fc.double({ min: 1, max: Number.MAX_VALUE, noNaN: true }),
  });
  const chance = fc.double({ min: 0, max: 1, noNaN: true });
  const plans = fc.property(fc.integer({ min: 1, max: 2 ** 31 }), options, chance, (attempt, each, drawn) => {
    const waitMs = backoffMs(attempt, each, () => drawn);
    expect(waitMs >= 0 && waitMs <= Math.min(each.maxMs, Number.MAX_SAFE_INTEGER)).toBe(true);
  });
  fc.assert(plans, { numRuns: 1_000 });
});

it("never falls from one attempt to the next, but for the jitter", () => {
  const ceilings = Array.from({ length: 2_000 }, (_, index) => backoffMs(index + 1, { maxMs: Infinity }, () => 1));
  expect(ceilings).toEqual(ceilings.toSorted((a, b) => a - b));
  expect(ceilings.at(-1)).toBe(Number.MAX_SAFE_INTEGER);
});

it("refuses a number of an attempt that is none, and bad options", () => {
  for (const attempt of [0, -1, 1.5, Number.NaN]) expect(() => backoffMs(attempt)).toThrow(/^attempt must be/);
  for (const bad of [{ baseMs: -1 }, { baseMs: Infinity }, { maxMs: -1 }, { factor: 0 }, { factor: Number.NaN }])
    expect(() => backoffMs(1, bad)).toThrow(RangeError);
});
