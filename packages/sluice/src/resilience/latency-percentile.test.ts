import * as fc from "fast-check";
import { expect, it } from "vitest";
import { LatencyPercentile } from "./latency-percentile.ts";

it("is the latency that the share stays below, 5 % exact", () => {
  const delay = new LatencyPercentile(95);
  for (let ms = 1; ms <= 1_000; ms += 1) delay.record(ms);
  expect(delay.ms).toBeGreaterThanOrEqual(950);
  expect(delay.ms).toBeLessThan(950 * 1.05);
  expect(delay.samples).toBe(1_000);
});

it("is within 5 % above the exact percentile of what has not faded, however it was asked in between", () => {
  const latency = fc.oneof(fc.double({ min: 0, max: 50, noNaN: true }), fc.double({ min: 0, max: 1e6, noNaN: true }));
  const plans = fc.property(
    fc.array(fc.record({ latency, isAsked: fc.boolean() }), { minLength: 1, maxLength: 100 }),
    fc.integer({ min: 1, max: 99 }),
    fc.integer({ min: 1, max: 200 }),
    (plan, percentile, window) => {
      const delay = new LatencyPercentile(percentile, { minSamples: 1, window });
      const all: Weighed[] = [];
      for (const { latency: ms, isAsked } of plan) {
        delay.record(ms);
        all.push({ ms, weight: 1 });
        if (weigh(all) >= 2 * window) for (const each of all) each.weight /= 2;
        if (!isAsked) continue;
        const exact = Math.max(0.1, exactly(all, percentile));
        expect(delay.ms).toBeGreaterThanOrEqual(exact * (1 - 1e-9));
        expect(delay.ms).toBeLessThanOrEqual(exact * 1.05 * (1 + 1e-9));
      }
    },
  );
  fc.assert(plans, { numRuns: 500 });
});

interface Weighed {
  readonly ms: number;
  weight: number;
}

function weigh(all: readonly Weighed[]): number {
  return all.reduce((sum, { weight }) => sum + weight, 0);
}

function exactly(all: readonly Weighed[], percentile: number): number {
  const wanted = (weigh(all) * percentile) / 100;
  let sum = 0;
  for (const { ms, weight } of all.toSorted((a, b) => a.ms - b.ms)) {
    sum += weight;
    if (sum >= wanted) return ms;
  }
  return Number.NaN;
}

it("forgets what is long past", () => {
  const delay = new LatencyPercentile(50, { window: 100 });
  for (let i = 0; i < 1_000; i += 1) delay.record(1_000);
  for (let i = 0; i < 199; i += 1) delay.record(10);
  expect(delay.ms).toBeLessThan(11);
  for (let i = 0; i < 199; i += 1) delay.record(1_000);
  expect(delay.ms).toBeGreaterThanOrEqual(1_000);
});

it("says initialMs until it knows enough, and keeps to its bounds from then on", () => {
  const delay = new LatencyPercentile(50, { minSamples: 3, initialMs: 7, minMs: 20, maxMs: 80 });
  const said = [1, 1, 1, 500, 500, 500, 500].map((ms) => {
    delay.record(ms);
    return delay.ms;
  });
  expect(said).toEqual([7, 7, 20, 20, 20, 20, 80]);
  expect(new LatencyPercentile(50).ms).toBe(Infinity);
});

it("takes 0, what is below its least bucket and what is above its greatest", () => {
  for (const [ms, expected] of [
    [0, 0.1],
    [1e-9, 0.1],
    [1e12, 3_650_000],
    [Infinity, 3_650_000],
  ] as const) {
    const delay = new LatencyPercentile(99, { minSamples: 1 });
    delay.record(ms);
    expect(Math.abs(delay.ms / expected - 1)).toBeLessThan(0.05);
  }
});

it("refuses what is no percentile, no latency or no bound", () => {
  for (const bad of [0, 100, -1, Number.NaN]) expect(() => new LatencyPercentile(bad)).toThrow(/^percentile must be/);
  for (const bad of [{ minSamples: 0 }, { initialMs: -1 }, { minMs: Infinity }, { minMs: 2, maxMs: 1 }, { window: 0 }])
    expect(() => new LatencyPercentile(95, bad)).toThrow(RangeError);
  for (const bad of [-1, Number.NaN]) expect(() => new LatencyPercentile(95).record(bad)).toThrow(RangeError);
});
