import { expect, it } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { CircuitBreaker, type CircuitBreakerOptions } from "./circuit-breaker.ts";
import { growingCooldown } from "./circuit-cooldown.ts";
import { countWindow } from "./circuit-count-window.ts";
import { type CircuitRecord, restoreCircuit, saveCircuit } from "./circuit-record.ts";
import { timeWindow } from "./circuit-time-window.ts";

const NOON = Date.UTC(2026, 0, 1, 12);
const down = new Error("down");

/** A breaker of a process of its own, whose monotonic clock begins at 0. */
function start(
  wallStartAt: number,
  options: CircuitBreakerOptions = {},
): { clock: VirtualClock; breaker: CircuitBreaker } {
  const clock = new VirtualClock({ wallStartAt });
  return { clock, breaker: new CircuitBreaker({ failures: 3, cooldownMs: 1_000, clock, ...options }) };
}

async function failTimes(breaker: CircuitBreaker, count: number): Promise<void> {
  for (let call = 0; call < count; call += 1) await breaker.run(() => Promise.reject(down)).catch(() => {});
}

const throughJson = (record: CircuitRecord): CircuitRecord => JSON.parse(JSON.stringify(record)) as CircuitRecord;

it("goes on counting failures where another process stopped", async () => {
  const old = start(NOON);
  await failTimes(old.breaker, 2);
  const { clock, breaker } = start(NOON + 5_000);
  restoreCircuit(breaker, throughJson(saveCircuit(old.breaker, old.clock)), clock);
  await failTimes(breaker, 1);
  expect(breaker.state).toBe("open");
});

it.each([
  [400, "open", 600],
  [1_000, "half-open", 0],
  [86_400_000, "half-open", 0],
])("%d ms after it was saved open, it is %s for another %d ms", async (agoMs, state, leftMs) => {
  const old = start(NOON);
  await failTimes(old.breaker, 3);
  const { clock, breaker } = start(NOON + agoMs);
  restoreCircuit(breaker, throughJson(saveCircuit(old.breaker, old.clock)), clock);
  expect([breaker.state, breaker.retryAfterMs]).toEqual([state, leftMs]);
});

it("stays open no longer than it had to, though the wall clock was set back by a year", async () => {
  const old = start(NOON);
  await failTimes(old.breaker, 3);
  const { clock, breaker } = start(NOON - 365 * 86_400_000);
  restoreCircuit(breaker, saveCircuit(old.breaker, old.clock), clock);
  expect(breaker.retryAfterMs).toBe(1_000);
});

it("goes on growing its cooldown", async () => {
  const cooldown = growingCooldown({ baseMs: 1_000 });
  const old = start(NOON, { cooldown });
  await failTimes(old.breaker, 3);
  await old.clock.advance(1_000);
  await failTimes(old.breaker, 1);
  const { clock, breaker } = start(NOON + 10_000, { cooldown });
  restoreCircuit(breaker, throughJson(saveCircuit(old.breaker, old.clock)), clock);
  await failTimes(breaker, 1);
  expect([breaker.stats().openings, breaker.retryAfterMs]).toEqual([3, 4_000]);
});

it.each([
  ["a count window", countWindow({ size: 10, minCalls: 4 })],
  ["a time window", timeWindow({ minCalls: 4 })],
])("keeps what %s has counted", async (_, trip) => {
  const old = start(NOON, { trip });
  await failTimes(old.breaker, 3);
  const { clock, breaker } = start(NOON, { trip });
  restoreCircuit(breaker, throughJson(saveCircuit(old.breaker, old.clock)), clock);
  expect(breaker.stats()).toMatchObject({ state: "closed", failures: 3 });
  await failTimes(breaker, 1);
  expect(breaker.state).toBe("open");
});

it("closes a breaker that is open, if the record is of one that was closed", async () => {
  const { clock, breaker } = start(NOON);
  const record = saveCircuit(breaker, clock);
  await failTimes(breaker, 3);
  restoreCircuit(breaker, record, clock);
  expect(breaker.state).toBe("closed");
});

it.each<[string, object | null | undefined, typeof TypeError | typeof RangeError]>([
  ["no object", undefined, TypeError],
  ["null", null, TypeError],
  ["another version", { version: 2 }, RangeError],
  ["no known state", { state: "ajar" }, RangeError],
  ["no time", { savedAt: "noon" }, TypeError],
  ["an endless cooldown", { retryAfterMs: Infinity }, RangeError],
  ["less than no failures", { failures: -1 }, RangeError],
  ["no opening though it was open", { openings: 0 }, RangeError],
  ["counts though the trip has none", { counts: [1] }, RangeError],
  ["counts that are no list", { counts: "many" }, TypeError],
])("refuses a record with %s, and leaves the breaker as it was", async (_, change, why) => {
  const { clock, breaker } = start(NOON);
  await failTimes(breaker, 2);
  const good: CircuitRecord = { ...saveCircuit(breaker, clock), state: "open", openings: 1 };
  const bad = (change == null ? change : { ...good, ...change }) as CircuitRecord;
  expect(() => restoreCircuit(breaker, bad, clock)).toThrow(why);
  expect(breaker.stats()).toMatchObject({ state: "closed", failures: 2 });
});

it("refuses the record of another kind of trip", () => {
  const old = start(NOON);
  const { clock, breaker } = start(NOON, { trip: countWindow() });
  expect(() => restoreCircuit(breaker, saveCircuit(old.breaker, old.clock), clock)).toThrow(RangeError);
});
