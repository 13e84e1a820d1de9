/**
 * What makes a circuit breaker open: what it remembers of the calls made while it is closed, and when that is too much.
 * `consecutive` counts failures in a row; `countWindow` and `timeWindow` compare rates over the last calls. For another
 * rule, write a `CircuitTrip`.
 */
import type { Clock } from "../clock/clock.ts";
import { checkInteger } from "../internal/check.ts";

export interface CircuitTrip {
  /** A call that takes at least so long is slow, and a slow trial is a failed one. Undefined: nobody looks at the time. */
  readonly slowMs?: number | undefined;
  /** Failed calls of those it remembers. */
  failures: number;
  /** Takes in the outcome of a call that counts, and says whether the breaker must open. */
  record(isFailure: boolean, isSlow: boolean): boolean;
  /** For `saveCircuit`: what it remembers, if that is more than `failures`. */
  save?(): readonly number[];
  /** What `save` said `agoMs` ago. Throws a RangeError for what it can't have said, and then remembers what it did. */
  restore?(saved: readonly number[], agoMs: number): void;
}

/** Makes a new one whenever a breaker begins anew. */
export type CircuitTripFactory = (clock: Clock) => CircuitTrip;

/**
 * Opens after so many failures in a row, an integer >= 1. A dependency that fails every other call never gets there: use
 * a window for such.
 */
export function consecutive(failures: number): CircuitTripFactory {
  checkInteger("failures", failures, { min: 1 });
  return () => new Consecutive(failures);
}

class Consecutive implements CircuitTrip {
  readonly #max: number;
  failures = 0;

  constructor(max: number) {
    this.#max = max;
  }

  record(isFailure: boolean): boolean {
    this.failures = isFailure ? this.failures + 1 : 0;
    return this.failures >= this.#max;
  }
}
