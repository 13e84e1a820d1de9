import * as fc from "fast-check";
import { expect, it } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { RetryBudget } from "./retry-budget.ts";
import { retry } from "./retry.ts";

function fail(): never {
  throw Object.assign(new Error("unavailable"), { status: 503 });
}

/** How many calls a service gets whose callers, at so many sites, make so many requests, all of which fail. */
async function callsOf(
  requests: number,
  budget: RetryBudget | undefined,
  clock: VirtualClock,
  sites = 1,
): Promise<number> {
  const policies = Array.from({ length: sites }, () => retry({ retries: 3, budget, clock }));
  const ended = policies.flatMap((policy) =>
    Array.from({ length: requests / sites }, () => policy.run(fail).catch(() => {})),
  );
  await clock.advance(5_000);
  await Promise.all(ended);
  return policies.reduce((sum, policy) => sum + policy.stats().attempts, 0);
}

it("J41: 1,000 requests that fail, with 3 retries each, are 1,100 calls within a budget of 10 %, and 4,000 without", async () => {
  const clock = new VirtualClock();
  const budget = new RetryBudget({ clock });
  expect(await callsOf(1_000, budget, clock)).toBe(1_100);
  expect(budget.stats()).toMatchObject({ calls: 1_000, retries: 100, left: 0 });
  expect(await callsOf(1_000, undefined, clock)).toBe(4_000);
});

it("J41: also one request after the other", async () => {
  const clock = new VirtualClock();
  const policy = retry({ retries: 3, baseMs: 0, budget: new RetryBudget({ clock }), clock });
  for (let id = 0; id < 1_000; id += 1) {
    const ended = policy.run(fail).catch(() => {});
    await clock.advance(0);
    await ended;
  }
  expect(policy.stats()).toMatchObject({ attempts: 1_100, retries: 100 });
});

it("F05.4: one budget holds for all call sites that share it", async () => {
  const clock = new VirtualClock();
  expect(await callsOf(1_000, new RetryBudget({ clock }), clock, 8)).toBe(1_100);
});

it("J40: who calls too rarely to have earned a retry has the reserve, 10 in 10 s by default", async () => {
  const clock = new VirtualClock();
  expect(await callsOf(20, new RetryBudget({ clock }), clock)).toBe(30);
  expect(await callsOf(20, new RetryBudget({ minPerSecond: 2, clock }), clock)).toBe(40);
  expect(await callsOf(20, new RetryBudget({ minPerSecond: 0, clock }), clock)).toBe(22);
  expect(await callsOf(20, new RetryBudget({ ratio: 0, minPerSecond: 0, clock }), clock)).toBe(20);
});

it("J40: a spent budget fails fast, with the last error as it was, and is told in the stats", async () => {
  const clock = new VirtualClock();
  const budget = new RetryBudget({ ratio: 0, minPerSecond: 0, clock });
  const heard: unknown[] = [];
  const policy = retry({ budget, clock, onRetry: (event) => heard.push(event) });
  await expect(policy.run(fail)).rejects.toMatchObject({ status: 503 });
  expect(policy.stats()).toMatchObject({ attempts: 1, retries: 0, waiting: 0 });
  expect([heard, budget.stats().refused]).toEqual([[], 1]);
});

it("J40: has no timer, and forgets by tenths of its window", async () => {
  const clock = new VirtualClock();
  const budget = new RetryBudget({ ratio: 1, minPerSecond: 0, windowMs: 1_000, clock });
  budget.onCall();
  await clock.advance(500);
  budget.onCall();
  expect([budget.trySpend(), budget.trySpend(), budget.trySpend()]).toEqual([true, true, false]);
  await clock.advance(499);
  expect(budget.stats()).toEqual({ calls: 2, retries: 2, left: 0, refused: 1 });
  await clock.advance(1);
  expect(budget.stats()).toEqual({ calls: 1, retries: 2, left: 0, refused: 1 });
  await clock.advance(500);
  expect(budget.stats()).toEqual({ calls: 0, retries: 0, left: 0, refused: 1 });
  await clock.advance(1e9);
  budget.onCall();
  expect([budget.stats().left, clock.timers]).toEqual([1, 0]);
});

it("a tenth of a hundred is ten, though floating point says less or more", () => {
  for (const [ratio, calls, retries] of [
    [0.1, 100, 10],
    [0.29, 100, 29],
    [0.07, 100, 7],
    [0.57, 100, 57],
  ] as const) {
    // prettier-ignore
    const budget = new RetryBudget({ ratio, minPerSecond: 0, clock: new VirtualClock() });
    for (let id = 0; id < calls; id += 1) budget.onCall();
    let spent = 0;
    while (budget.trySpend()) spent += 1;
    expect(spent).toBe(retries);
  }
});

it("a clock that is behind a moment ago changes nothing", () => {
  let nowMs = 5_000;
  const clock = Object.assign(new VirtualClock(), { now: () => nowMs });
  const budget = new RetryBudget({ ratio: 1, minPerSecond: 0, clock });
  nowMs = 8_000;
  budget.onCall();
  nowMs = 6_000;
  budget.onCall();
  expect(budget.stats()).toMatchObject({ calls: 2, left: 2 });
  nowMs = 8_000; // nor when it has caught up
  expect(budget.stats()).toMatchObject({ calls: 2, left: 2 });
});

it("allows what a count of the window by hand allows, under any plan", () => {
  const step = fc.oneof(
    fc.constantFrom("call", "call", "spend", "spend"),
    fc.integer({ min: 0, max: 1_500 }).map((ms) => ms),
  );
  const plans = fc.asyncProperty(
    fc.array(step, { maxLength: 60 }),
    fc.constantFrom(0, 0.1, 0.5, 1),
    fc.constantFrom(0, 1, 3),
    async (plan, ratio, minPerSecond) => {
      const clock = new VirtualClock();
      const budget = new RetryBudget({ ratio, minPerSecond, windowMs: 1_000, clock });
      const events: { readonly tenth: number; readonly kind: "call" | "retry" }[] = [];
      const inWindow = (kind: string): number =>
        events.filter((each) => each.kind === kind && each.tenth > Math.floor(clock.now() / 100) - 10).length;
      for (const each of plan) {
        const tenth = Math.floor(clock.now() / 100);
        if (typeof each === "number") await clock.advance(each);
        else if (each === "call") {
          budget.onCall();
          events.push({ tenth, kind: "call" });
        } else {
          const isAllowed = inWindow("retry") + 1 <= Math.max(minPerSecond, ratio * inWindow("call")) + 1e-9;
          expect(budget.trySpend()).toBe(isAllowed);
          if (isAllowed) events.push({ tenth, kind: "retry" });
        }
        expect(budget.stats()).toMatchObject({ calls: inWindow("call"), retries: inWindow("retry") });
      }
    },
  );
  return fc.assert(plans, { numRuns: 500 });
});

it("refuses bad options", () => {
  for (const bad of [{ ratio: -1 }, { ratio: Infinity }, { minPerSecond: -1 }, { windowMs: 0 }, { windowMs: Infinity }])
    expect(() => new RetryBudget(bad)).toThrow(RangeError);
  expect(() => new RetryBudget({ name: 1 as unknown as string })).toThrow(TypeError);
});
