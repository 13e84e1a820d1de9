/** Opens a circuit breaker by the share of failed, or of slow, calls among the last so many, however long ago they were. */
import { checkInteger } from "../internal/check.ts";
import { CircuitRates, type CircuitRateOptions } from "./circuit-rates.ts";
import type { CircuitTrip, CircuitTripFactory } from "./circuit-trip.ts";

export interface CountWindowOptions extends CircuitRateOptions {
  /** Calls remembered, an integer >= 1; `minCalls` is no more than that. @default 100 */
  readonly size?: number | undefined;
}

export function countWindow(options: CountWindowOptions = {}): CircuitTripFactory {
  const size = checkInteger("size", options.size ?? 100, { min: 1 });
  const rates = new CircuitRates(options);
  return () => new CountWindow(size, rates);
}

const FAILED = 1;
const SLOW = 2;

class CountWindow implements CircuitTrip {
  // I1  #ring has the last #calls outcomes, the newest before #next; the rest of it is 0
  // I2  failures and #slow are how many of these have the bit
  readonly slowMs: number | undefined;
  readonly #rates: CircuitRates;
  readonly #ring: Uint8Array;
  #next = 0;
  #calls = 0;
  #slow = 0;
  failures = 0;

  constructor(size: number, rates: CircuitRates) {
    this.slowMs = rates.slowMs;
    this.#rates = rates;
    this.#ring = new Uint8Array(size);
  }

  record(isFailure: boolean, isSlow: boolean): boolean {
    this.#push((isFailure ? FAILED : 0) | (isSlow ? SLOW : 0));
    if (!isFailure && !isSlow) return false;
    const counts = { calls: this.#calls, failures: this.failures, slow: this.#slow };
    return this.#rates.exceededBy(counts, this.#ring.length);
  }

  save(): readonly number[] {
    const oldest = this.#next + this.#ring.length - this.#calls;
    return Array.from({ length: this.#calls }, (_, index) => this.#ring[(oldest + index) % this.#ring.length] ?? 0);
  }

  restore(saved: readonly number[]): void {
    for (const outcome of saved)
      if (checkInteger("outcome", outcome, { min: 0 }) > (FAILED | SLOW))
        throw new RangeError(`outcome must be <= ${FAILED | SLOW}, got ${outcome}`);
    this.#ring.fill(0);
    this.#next = this.#calls = this.#slow = this.failures = 0;
    for (const outcome of saved) this.#push(outcome);
  }

  #push(outcome: number): void {
    const oldest = this.#ring[this.#next] ?? 0;
    this.#ring[this.#next] = outcome;
    this.#next = (this.#next + 1) % this.#ring.length;
    this.#calls = Math.min(this.#calls + 1, this.#ring.length);
    this.failures += (outcome & FAILED) - (oldest & FAILED);
    this.#slow += ((outcome & SLOW) - (oldest & SLOW)) / SLOW;
  }
}
