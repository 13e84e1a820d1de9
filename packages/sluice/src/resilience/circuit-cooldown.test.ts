import { expect, it } from "vitest";
import type { CircuitOpening } from "./circuit-breaker.ts";
import { growingCooldown, type GrowingCooldownOptions } from "./circuit-cooldown.ts";

function after(openings: number, options: GrowingCooldownOptions, retryAfterMs?: unknown): number {
  const outcome: CircuitOpening["outcome"] = { status: "rejected", reason: { retryAfterMs } };
  return growingCooldown(options)({ openings, outcome });
}

it("doubles with each opening, up to the maximum", () => {
  const found = [1, 2, 3, 4, 5, 2_000].map((openings) => after(openings, { baseMs: 100, maxMs: 1_000 }));
  expect(found).toEqual([100, 200, 400, 800, 1_000, 1_000]);
});

it("grows by another factor, or not at all", () => {
  expect(after(3, { baseMs: 100, factor: 3 })).toBe(900);
  expect(after(9, { baseMs: 100, factor: 1 })).toBe(100);
});

it("leaves a share of it to chance", () => {
  const found = [0, 0.5].map((draw) => after(1, { baseMs: 1_000, jitter: 0.2, random: () => draw }));
  expect(found).toEqual([1_000, 900]);
});

it.each([
  ["what it would be itself is less", 500, 500],
  ["not if it is less", 50, 100],
  ["but no more than the maximum", 1e9, 1_000],
  ["not if it is no number", "500", 100],
  ["not if it is not above 0", -1, 100],
  ["not if it is NaN", Number.NaN, 100],
])("lasts as long as the server asks, if %s", (_, retryAfterMs, expected) => {
  expect(after(1, { baseMs: 100, maxMs: 1_000 }, retryAfterMs)).toBe(expected);
});

it("is its own if there is no error to ask", () => {
  const cooldown = growingCooldown({ baseMs: 100 });
  for (const outcome of [undefined, { status: "fulfilled", value: 1 }, { status: "rejected", reason: null }] as const)
    expect(cooldown({ openings: 1, outcome })).toBe(100);
});

it("refuses bad options", () => {
  const bad = [
    { baseMs: 0 },
    { baseMs: 10, maxMs: 9 },
    { maxMs: Infinity },
    { factor: 0.5 },
    { jitter: 1.1 },
    { jitter: -1 },
  ];
  for (const options of bad) expect(() => growingCooldown(options)).toThrow(RangeError);
  expect(() => growingCooldown({ random: 1 as never })).toThrow("random must be a function, got number");
});
