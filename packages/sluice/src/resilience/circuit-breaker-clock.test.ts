import { expect, it, vi } from "vitest";
import { CircuitOpenError } from "../errors.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { CircuitBreaker, type CircuitChange } from "./circuit-breaker.ts";

/** The clock throws at the reading of this number, and at no other. */
function breakAt(clock: VirtualClock, reading: number): void {
  let readings = 0;
  const now = clock.now.bind(clock);
  vi.spyOn(clock, "now").mockImplementation(() => {
    readings += 1;
    if (readings === reading) throw new Error("broken clock");
    return now();
  });
}

it.each([1, 2, 3, 4])("keeps no trial's place when the clock throws at its reading %i", async (reading) => {
  const clock = new VirtualClock();
  const changes: CircuitChange[] = [];
  const breaker = new CircuitBreaker({
    clock,
    failures: 1,
    cooldownMs: 10,
    onStateChange: (change) => changes.push(change),
  });
  await expect(breaker.run(() => Promise.reject(new Error("down")))).rejects.toThrow("down");
  await clock.advance(10);
  breakAt(clock, reading);
  await breaker.run(() => 1).catch(() => {});
  vi.restoreAllMocks();
  expect(breaker.stats()).toMatchObject({ running: 0, trials: 0 });
  expect(await breaker.run(() => 1)).toBe(1);
  expect(changes.map(({ to }) => to)).toEqual(["open", "half-open", "closed"]);
});

it("stays as it is if the clock throws when it is to open", async () => {
  const clock = new VirtualClock();
  const breaker = new CircuitBreaker({ clock, failures: 1 });
  breakAt(clock, 1);
  await expect(breaker.run(() => Promise.reject(new Error("down")))).rejects.toThrow("broken clock");
  vi.restoreAllMocks();
  expect(breaker.stats()).toMatchObject({ state: "closed", running: 0, opened: 0, openings: 0 });
  await expect(breaker.run(() => Promise.reject(new Error("down")))).rejects.toThrow("down");
  await expect(breaker.run(() => 1)).rejects.toThrow(CircuitOpenError);
});
