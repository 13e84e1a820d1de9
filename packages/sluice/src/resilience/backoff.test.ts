import * as fc from "fast-check";
import { expect, it } from "vitest";
import {
  type Backoff,
  backoffMs,
  constantBackoff,
  decorrelatedJitter,
  equalJitter,
  exponentialBackoff,
  fullJitter,
  linearBackoff,
} from "./backoff.ts";

/** The waits after the first, second, … attempt of a run whose draws are all the same. */
function waits(backoff: Backoff, count: number, chance = 1): number[] {
  const found: number[] = [];
  for (let attempt = 1; attempt <= count; attempt += 1) {
    const previousMs = found.at(-1) ?? 0;
    found.push(backoff(attempt, { previousMs, reason: undefined, random: () => chance }));
  }
  return found;
}

it("J37: draws from nothing up to a ceiling that doubles, from 100 ms to 10 s by default", () => {
  const ceilings = Array.from({ length: 9 }, (_, index) => backoffMs(index + 1, {}, () => 1));
  expect(ceilings).toEqual([100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]);
  expect(backoffMs(4, {}, () => 0)).toBe(0);
  expect(backoffMs(4, {}, () => 0.25)).toBe(200);
});

it("grows by the factor it is given, and not at all with 1", () => {
  expect(waits(exponentialBackoff({ factor: 1 }), 3)).toEqual([100, 100, 100]);
  expect(waits(exponentialBackoff({ factor: 10 }), 3)).toEqual([100, 1_000, 10_000]);
});

it("grows by the same each time if linear, and not at all if constant", () => {
  expect(waits(linearBackoff(), 3)).toEqual([100, 200, 300]);
  expect(waits(linearBackoff({ baseMs: 50, stepMs: 500, maxMs: 1_000 }), 4)).toEqual([50, 550, 1_000, 1_000]);
  expect(waits(constantBackoff(70), 3)).toEqual([70, 70, 70]);
});

it("draws the jitter from all of the curve, from its upper half, or from what was waited before", () => {
  for (const [chance, full, equal] of [[0, 0, 400], [0.5, 400, 600], [1, 800, 800]] as const) // prettier-ignore
    expect([fullJitter(constantBackoff(800)), equalJitter(constantBackoff(800))].flatMap((each) => waits(each, 1, chance))).toEqual([full, equal]); // prettier-ignore
  const decorrelated = decorrelatedJitter({ baseMs: 100, maxMs: 2_000 });
  expect(waits(decorrelated, 4, 0)).toEqual([100, 100, 100, 100]);
  expect(waits(decorrelated, 4, 1)).toEqual([100, 300, 900, 2_000]);
  expect(waits(decorrelated, 3, 0.5)).toEqual([100, 200, 350]);
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
    stepMs: fc.double({ min: 0, max: Number.MAX_VALUE, noNaN: true }),
    maxMs: fc.double({ min: 0, max: Infinity, noNaN: true }),
    factor: fc.double({ min: 1, max: Number.MAX_VALUE, noNaN: true }),
  });
  const chance = fc.double({ min: 0, max: 1, noNaN: true });
  const previous = fc.double({ min: 0, max: Number.MAX_SAFE_INTEGER, noNaN: true });
  const plans = fc.property(
    fc.integer({ min: 1, max: 2 ** 31 }),
    options,
    chance,
    previous,
    (attempt, each, drawn, previousMs) => {
      const context = { previousMs, reason: undefined, random: () => drawn };
      const [exponential, linear] = [exponentialBackoff(each), linearBackoff(each)];
      const all = [exponential, linear, fullJitter(exponential), equalJitter(linear), decorrelatedJitter(each)];
      for (const waitMs of all.map((backoff) => backoff(attempt, context)))
        expect(waitMs >= 0 && waitMs <= Math.min(each.maxMs, Number.MAX_SAFE_INTEGER)).toBe(true);
    },
  );
  fc.assert(plans, { numRuns: 1_000 });
});

it("never falls from one attempt to the next, but for the jitter", () => {
  for (const backoff of [exponentialBackoff({ maxMs: Infinity }), linearBackoff({ maxMs: Infinity })]) {
    const ceilings = waits(backoff, 2_000);
    expect(ceilings).toEqual(ceilings.toSorted((a, b) => a - b));
  }
  expect(waits(exponentialBackoff({ maxMs: Infinity }), 2_000).at(-1)).toBe(Number.MAX_SAFE_INTEGER);
});

it("refuses a number of an attempt that is none, and bad options", () => {
  for (const attempt of [0, -1, 1.5, Number.NaN]) expect(() => backoffMs(attempt)).toThrow(/^attempt must be/);
  for (const bad of [{ baseMs: -1 }, { baseMs: Infinity }, { maxMs: -1 }, { factor: 0 }, { factor: Number.NaN }])
    expect(() => backoffMs(1, bad)).toThrow(RangeError);
  for (const bad of [{ baseMs: -1 }, { stepMs: -1 }, { stepMs: Infinity }, { maxMs: Number.NaN }])
    expect(() => linearBackoff(bad)).toThrow(RangeError);
  for (const bad of [{ baseMs: Infinity }, { maxMs: -1 }]) expect(() => decorrelatedJitter(bad)).toThrow(RangeError);
  for (const bad of [-1, Infinity, Number.NaN]) expect(() => constantBackoff(bad)).toThrow(/^ms must be/);
});
