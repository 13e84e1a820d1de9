import * as fc from "fast-check";
import { expect, it } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { coarseTime } from "./coarse-time.ts";

class CountingClock extends VirtualClock {
  readings = 0;
  /** Time that passes while nobody lets timers fire, as in a turn of the event loop that takes long. */
  blockedMs = 0;

  override now(): number {
    this.readings += 1;
    return super.now() + this.blockedMs;
  }
}

it("reads the clock each time while few ask", async () => {
  const clock = new CountingClock();
  const time = coarseTime(clock);
  for (let times = 0; times < 1_000; times += 1) {
    await clock.advance(0.1);
    expect(time()).toBe(clock.now());
  }
  expect([clock.readings, clock.timers]).toEqual([2_000, 0]);
});

it("lets one reading serve for 64 more in a burst", () => {
  const clock = new CountingClock();
  const time = coarseTime(clock);
  for (let times = 0; times < 16; times += 1) time();
  expect([clock.readings, clock.timers]).toEqual([16, 0]); // no burst yet
  for (let times = 0; times < 1 + 65 * 100; times += 1) time();
  expect(clock.readings).toBeLessThanOrEqual(17 + 101);
  expect(clock.timers).toBe(1);
});

it("is exact again within 64 readings though no timer fires", () => {
  const clock = new CountingClock();
  const time = coarseTime(clock);
  for (let times = 0; times < 100; times += 1) time();
  clock.blockedMs = 500;
  const readings = Array.from({ length: 65 }, () => time());
  expect(readings.at(-1)).toBe(500);
  expect(time()).toBe(500);
});

it("is never more than a millisecond behind while timers fire, and never goes back", () => {
  const step = fc.oneof(fc.constant(0), fc.double({ min: 0, max: 0.05, noNaN: true }), fc.integer({ min: 1, max: 50 }));
  const plans = fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 30 }), async (plan) => {
    const clock = new VirtualClock();
    const time = coarseTime(clock);
    let last = 0;
    for (const ms of plan) {
      await clock.advance(ms);
      for (let times = 0; times < 30; times += 1) {
        const now = time();
        expect(clock.now() - now).toBeLessThanOrEqual(1);
        expect(now).toBeGreaterThanOrEqual(last);
        last = now;
      }
    }
  });
  return fc.assert(plans, { numRuns: 50 });
});
