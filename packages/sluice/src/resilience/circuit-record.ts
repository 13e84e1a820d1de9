/**
 * What a circuit breaker knows, as JSON: for a process that is replaced, or lives for one request. It goes by the wall
 * clock, since a monotonic one says nothing to another process; a wall clock that was set back makes no cooldown longer.
 */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { checkInteger, checkMs, checkOneOf } from "../internal/check.ts";
import type { CircuitBreaker, CircuitState } from "./circuit-breaker.ts";

export interface CircuitRecord {
  readonly version: 1;
  /** By the wall clock. */
  readonly savedAt: number;
  readonly state: CircuitState;
  /** How long it had to stay open then. */
  readonly retryAfterMs: number;
  /** Times it had opened since it was last closed; 0 if it was closed. */
  readonly openings: number;
  /** What its trip remembered. */
  readonly failures: number;
  readonly counts: readonly number[] | null;
}

/**
 * Calls under way and trials are left out: their outcomes move nothing in another process. `clock` is the one that the
 * breaker has, here and in `restoreCircuit`.
 */
export function saveCircuit(breaker: CircuitBreaker, clock: Clock = systemClock): CircuitRecord {
  const { trip, state, retryAfterMs } = breaker;
  const { openings, failures } = breaker.stats();
  return {
    version: 1,
    savedAt: clock.wallNow(),
    state,
    retryAfterMs,
    openings,
    failures,
    counts: trip.save?.() ?? null,
  };
}

/**
 * Makes `breaker` what it was when the record was saved, the time since taken off: what was open may be half-open now.
 * Throws a TypeError or a RangeError for what is no such record, or is one of a breaker with another kind of `trip`, and
 * then leaves the breaker as it was.
 */
export function restoreCircuit(breaker: CircuitBreaker, record: CircuitRecord, clock: Clock = systemClock): void {
  if (typeof record !== "object" || record === null)
    throw new TypeError(`record must be an object, got ${record === null ? "null" : typeof record}`);
  if (record.version !== 1) throw new RangeError(`version must be 1, got ${String(record.version)}`);
  const state = checkOneOf("state", record.state, ["closed", "open", "half-open"]);
  const savedAt = checkMs("savedAt", record.savedAt, { min: 0 });
  const retryAfterMs = checkMs("retryAfterMs", record.retryAfterMs, { min: 0 });
  const openings = checkInteger("openings", record.openings, { min: state === "closed" ? 0 : 1 });
  const failures = checkInteger("failures", record.failures, { min: 0 });
  const agoMs = Math.max(0, clock.wallNow() - savedAt);
  restoreTrip(breaker, { failures, counts: record.counts }, agoMs);
  if (state === "closed") breaker.close();
  else breaker.open(Math.max(0, retryAfterMs - agoMs), openings);
}

function restoreTrip(
  { trip }: CircuitBreaker,
  { failures, counts }: Pick<CircuitRecord, "failures" | "counts">,
  agoMs: number,
): void {
  if (counts !== null && !Array.isArray(counts))
    throw new TypeError(`counts must be a list or null, got ${typeof counts}`);
  if ((counts === null) !== (trip.restore === undefined))
    throw new RangeError(
      `counts must be ${counts === null ? "a list" : "null"}: the record is of another kind of trip`,
    );
  if (counts === null) trip.failures = failures;
  else trip.restore?.(counts, agoMs);
}
