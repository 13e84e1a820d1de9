import { expect, it } from "vitest";
import { gradient, type GradientOptions } from "./adaptive-limiter-gradient.ts";
import type { LimitRule, LimitSample } from "./adaptive-limiter-options.ts";

/** Windows of ten calls, one after the other, and what limit they leave. */
class Windows {
  readonly #rule: LimitRule;
  limit: number;
  now = 0;

  constructor(limit: number, options: GradientOptions = {}) {
    this.#rule = gradient({ windowMs: 0, probeIntervalMs: Infinity, smoothing: 1, ...options })();
    this.limit = limit;
  }

  pass(latencyMs: number, more: Partial<LimitSample> = {}, overloads = 0): number {
    const startedAt = this.now;
    this.now += latencyMs;
    for (let call = 0; call < 10; call += 1) {
      const sample = { startedAt, endedAt: this.now, running: 100, isOverload: call < overloads, ...more };
      this.limit = this.#rule.next(this.limit, sample);
    }
    return this.limit;
  }
}

it("halves the limit for the first window, to see what calls take at rest, and goes on from where it was", () => {
  const windows = new Windows(100);
  expect(windows.pass(10)).toBe(50);
  expect(windows.pass(10)).toBe(100);
  expect(windows.pass(10)).toBe(110); // by its square root
});

it("halves it again while that makes calls quicker", () => {
  const windows = new Windows(100);
  windows.pass(40);
  expect(windows.pass(20)).toBe(25);
  expect(windows.pass(10)).toBe(12.5);
  expect(windows.pass(10)).toBe(100);
});

it("leaves out, while it tries less, the calls that more let in", () => {
  const windows = new Windows(100);
  windows.pass(40);
  expect(windows.pass(400, { startedAt: 0 })).toBe(50);
  expect(windows.pass(39)).toBe(100);
});

it("shrinks the limit by how much slower calls are than tolerated, but no window by more than half", () => {
  const windows = new Windows(100, { tolerance: 2 });
  windows.pass(10);
  windows.pass(10);
  expect(windows.pass(20)).toBe(110);
  expect(windows.pass(25)).toBeCloseTo(110 * 0.8 + Math.sqrt(110));
  const before = windows.limit;
  expect(windows.pass(1_000)).toBeCloseTo(before / 2 + Math.sqrt(before));
});

it("shrinks the limit by the share of calls that met overload, though they fail quickly", () => {
  const windows = new Windows(100);
  windows.pass(10);
  windows.pass(10);
  expect(windows.pass(10, {}, 2)).toBeCloseTo(100 * 0.8 + 10);
  const before = windows.limit;
  expect(windows.pass(10, {}, 10)).toBeCloseTo(before / 2 + Math.sqrt(before));
});

it("moves only part of the way with each window", () => {
  const windows = new Windows(100, { smoothing: 0.2 });
  windows.pass(10);
  windows.pass(10);
  expect(windows.pass(10)).toBe(102);
});

it("stays where it is while less than half of the limit is used, but for overload", () => {
  const windows = new Windows(100);
  windows.pass(10);
  windows.pass(10);
  expect(windows.pass(10, { running: 49 })).toBe(100);
  expect(windows.pass(90, { running: 49 })).toBe(100);
  expect(windows.pass(10, { running: 49 }, 5)).toBe(60);
});

it("judges after so long and so many calls, not before", () => {
  const rule = gradient({ windowMs: 100, minSamples: 3 })();
  const end = (endedAt: number): number => rule.next(100, { startedAt: 0, endedAt, running: 100, isOverload: false });
  expect([end(10), end(20), end(30), end(99), end(100)]).toEqual([100, 100, 100, 100, 50]);
});

it("takes calls that take no time for calls at rest", () => {
  const windows = new Windows(100);
  windows.pass(0);
  windows.pass(0);
  expect(windows.pass(0)).toBe(110);
});

it("does not shrink the limit because calls have taken no time before", () => {
  const windows = new Windows(100);
  for (let window = 0; window < 3; window += 1) windows.pass(0);
  for (let window = 0; window < 30; window += 1) windows.pass(window % 3 === 0 ? 0 : 5);
  expect(windows.limit).toBeGreaterThan(200);
});

it.each([
  [{ tolerance: 0.9 }, "tolerance must be finite and >= 1, got 0.9"],
  [{ smoothing: 1.5 }, "smoothing must be <= 1, got 1.5"],
  [{ windowMs: Infinity }, "windowMs must be finite and >= 0, got Infinity"],
  [{ minSamples: 0 }, "minSamples must be an integer >= 1, got 0"],
  [{ probeIntervalMs: -1 }, "probeIntervalMs must be >= 0, got -1"],
])("refuses %j", (options, why) => {
  expect(() => gradient(options)).toThrow(why);
});
