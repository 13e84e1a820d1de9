import * as fc from "fast-check";
import { expect, it } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { countWindow, type CountWindowOptions } from "./circuit-count-window.ts";
import { timeWindow, type TimeWindowOptions } from "./circuit-time-window.ts";
import { type CircuitTrip, consecutive } from "./circuit-trip.ts";

/** Whether each call opens: `.` succeeds, `x` fails, `s` is slow, `X` is both. */
function record(trip: CircuitTrip, calls: string): boolean[] {
  return calls.split("").map((call) => trip.record("xX".includes(call), "sX".includes(call)));
}

function opens(trip: CircuitTrip, calls: string): boolean {
  return record(trip, calls).includes(true);
}

const byCount = (options: CountWindowOptions): CircuitTrip => countWindow(options)(new VirtualClock());

it.each([
  ["half of its calls have failed", { size: 4, minCalls: 4 }, "..xx", true],
  ["less than its share has failed", { size: 4, minCalls: 4 }, "...x....x...x", false],
  ["enough of the last calls have failed, whatever was before", { size: 4 }, "....................xx", true],
  ["there are fewer calls than minCalls", { size: 100, minCalls: 10 }, "xxxxxxxxx", false],
  ["there are just minCalls", { size: 100, minCalls: 10 }, "xxxxxxxxxx", true],
  ["it can't hold minCalls: its size is enough", { size: 3, minCalls: 10 }, "xxx", true],
  ["all are slow, though none fails", { size: 4, slowMs: 10 }, "ssss", true],
  ["its share is slow", { size: 4, slowMs: 10, slowRate: 0.75 }, ".sss", true],
  [
    "slow and failed calls make the share only together",
    { size: 4, slowMs: 10, slowRate: 0.5, failureRate: 0.5 },
    ".x.s",
    false,
  ],
  ["a call is both", { size: 4, slowMs: 10, slowRate: 0.5, failureRate: 0.5 }, "..XX", true],
])("opens by count if %s: %o, %s: %s", (_, options, calls, expected) => {
  expect(opens(byCount(options), calls)).toBe(expected);
});

it.each([
  ["xx.xx.xx", false],
  ["xx.xxx", true],
  ["xxx", true],
])("opens by failures in a row, %s: %s", (calls, expected) => {
  expect(opens(consecutive(3)(new VirtualClock()), calls)).toBe(expected);
});

it.each([0, 1.5, Number.NaN])("refuses %d failures in a row", (failures) => {
  expect(() => consecutive(failures)).toThrow(RangeError(`failures must be an integer >= 1, got ${failures}`));
});

it("is never the cause of opening with a call that went well", () => {
  const trip = byCount({ size: 4, minCalls: 4 });
  expect(record(trip, "xx..")).toEqual([false, false, false, false]);
  expect(record(trip, "x")).toEqual([true]);
});

it("remembers the last calls as a list of them does, under any sequence", () => {
  const size = fc.integer({ min: 1, max: 8 });
  const calls = fc.array(fc.constantFrom(".", "x", "s", "X"), { maxLength: 60 });
  fc.assert(
    fc.property(size, calls, (max, sequence) => {
      const trip = byCount({ size: max, minCalls: 3, failureRate: 0.6, slowRate: 0.7, slowMs: 1 });
      const seen: string[] = [];
      for (const call of sequence) {
        seen.push(call);
        const last = seen.slice(-max);
        const [failed, slow] = ["xX", "sX"].map((kinds) => last.filter((each) => kinds.includes(each)).length);
        const share = (count = 0): number => count / last.length;
        const expected = last.length >= Math.min(3, max) && (share(failed) >= 0.6 || share(slow) >= 0.7);
        expect([trip.record("xX".includes(call), "sX".includes(call)), trip.failures]).toEqual([
          expected && call !== ".",
          failed,
        ]);
        const copy = byCount({ size: max });
        copy.restore?.(trip.save?.() ?? [], 0);
        expect([copy.save?.(), copy.failures]).toEqual([trip.save?.(), failed]);
      }
    }),
  );
});

function byTime(options: TimeWindowOptions): { readonly clock: VirtualClock; readonly trip: CircuitTrip } {
  const clock = new VirtualClock();
  return { clock, trip: timeWindow(options)(clock) };
}

it("opens by the rate of the last so many milliseconds, and forgets what is older", async () => {
  const { clock, trip } = byTime({ windowMs: 1_000, buckets: 10, minCalls: 4 });
  record(trip, "xxx");
  await clock.advance(500);
  record(trip, "...");
  expect(trip.failures).toBe(3);
  await clock.advance(500);
  expect(trip.failures).toBe(0);
  expect(opens(trip, "xx")).toBe(false); // 2 of 5
  expect(opens(trip, "x")).toBe(true); // 3 of 6
});

it("turns all buckets that have passed at the next call: failures of an hour ago trip nothing", async () => {
  const { clock, trip } = byTime({ windowMs: 1_000, buckets: 10, minCalls: 5 });
  record(trip, "xxxx");
  await clock.advance(3_600_000);
  expect([opens(trip, "x"), trip.failures, clock.timers]).toEqual([false, 1, 0]);
});

it("counts slow calls too", () => {
  const { trip } = byTime({ slowMs: 100, slowRate: 0.5, minCalls: 4 });
  expect([trip.slowMs, opens(trip, "..ss")]).toEqual([100, true]);
});

it("holds what came within the window, less a bucket at most, and nothing older, under any plan", () => {
  const plan = fc.array(fc.tuple(fc.integer({ min: 0, max: 150 }), fc.boolean()), { maxLength: 60 });
  return fc.assert(
    fc.asyncProperty(plan, async (calls) => {
      const { clock, trip } = byTime({ windowMs: 300, buckets: 3, failureRate: 0.5, minCalls: 1 });
      const failedAt: number[] = [];
      for (const [pauseMs, isFailure] of calls) {
        await clock.advance(pauseMs);
        trip.record(isFailure, false);
        if (isFailure) failedAt.push(clock.now());
        const within = (ms: number): number => failedAt.filter((at) => clock.now() - at < ms).length;
        expect(trip.failures).toBeGreaterThanOrEqual(within(200));
        expect(trip.failures).toBeLessThanOrEqual(within(300));
      }
    }),
  );
});

it("restores what it has saved, older by the time between, up to nothing", async () => {
  const { clock, trip } = byTime({ windowMs: 1_000, buckets: 10 });
  record(trip, "xx.");
  await clock.advance(300);
  record(trip, "x");
  const saved = trip.save?.() ?? [];
  for (const [agoMs, failures] of [
    [0, 3],
    [600, 3],
    [700, 1],
    [1_000, 0],
    [1e12, 0],
  ] as const) {
    const copy = byTime({ windowMs: 1_000, buckets: 10 }).trip;
    copy.restore?.(saved, agoMs);
    expect([agoMs, copy.failures]).toEqual([agoMs, failures]);
  }
});

it("refuses to restore what it can't have saved, and then remembers what it did", () => {
  const { trip } = byTime({ windowMs: 1_000, buckets: 2 });
  record(trip, "x");
  for (const bad of [[], [1, 1, 0], [1, 2, 0, 0, 0, 0], [1, 0, 2, 0, 0, 0], [-1, 0, 0, 0, 0, 0], [0.5, 0, 0, 0, 0, 0]])
    expect(() => trip.restore?.(bad, 0)).toThrow(RangeError);
  const counted = byCount({ size: 2 });
  record(counted, "x");
  for (const bad of [[4], [-1], [0.5]]) expect(() => counted.restore?.(bad, 0)).toThrow(RangeError);
  expect([trip.failures, counted.failures]).toEqual([1, 1]);
});

it("keeps the last of what a larger window has saved", () => {
  const large = byCount({ size: 4 });
  record(large, "xx.X");
  const small = byCount({ size: 2 });
  small.restore?.(large.save?.() ?? [], 0);
  expect([small.save?.(), small.failures]).toEqual([[0, 3], 1]);
});

it("asks for the time of a call only if one may be slow", () => {
  expect([byCount({}).slowMs, byTime({}).trip.slowMs, byCount({ slowMs: 5 }).slowMs]).toEqual([
    undefined,
    undefined,
    5,
  ]);
});

it("gives each breaker a window of its own", () => {
  const make = countWindow({ size: 2 });
  const [one, other] = [make(new VirtualClock()), make(new VirtualClock())];
  record(one, "x");
  expect(other.failures).toBe(0);
});

it("refuses bad options", () => {
  const rates = [{ failureRate: 0 }, { failureRate: 1.1 }, { slowRate: -1 }, { slowMs: 0 }, { minCalls: 0 }];
  for (const bad of [...rates, { size: 0 }, { size: 1.5 }]) expect(() => countWindow(bad)).toThrow(RangeError);
  for (const bad of [...rates, { windowMs: 0 }, { windowMs: Infinity }, { buckets: 0 }])
    expect(() => timeWindow(bad)).toThrow(RangeError);
});
