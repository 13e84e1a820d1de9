/**
 * Opens a circuit breaker by the share of failed, or of slow, calls within the last so many milliseconds. Time is cut into
 * buckets, which go as they pass out of the window; no timer turns them, but the next call, however late it comes.
 */
import type { Clock } from "../clock/clock.ts";
import { checkInteger, checkMs } from "../internal/check.ts";
import { coarseNow } from "../internal/coarse-now.ts";
import { type CircuitCounts, CircuitRates, type CircuitRateOptions } from "./circuit-rates.ts";
import type { CircuitTrip, CircuitTripFactory } from "./circuit-trip.ts";

export interface TimeWindowOptions extends CircuitRateOptions {
  /** How long a call is remembered: at most so long, and shorter by up to a bucket. At least 1. @default 10_000 */
  readonly windowMs?: number | undefined;
  /** More of them forget calls in smaller steps. An integer >= 1. @default 10 */
  readonly buckets?: number | undefined;
}

export function timeWindow(options: TimeWindowOptions = {}): CircuitTripFactory {
  const windowMs = checkMs("windowMs", options.windowMs ?? 10_000, { min: 1 });
  const buckets = checkInteger("buckets", options.buckets ?? 10, { min: 1 });
  const rates = new CircuitRates(options);
  return (clock) => new TimeWindow(windowMs / buckets, buckets, rates, clock);
}

/** Numbers to a bucket: calls, failures, slow calls. */
const WIDTH = 3;

class TimeWindow implements CircuitTrip {
  // I1  #ring has the buckets of the last so many periods up to #period, each at its period modulo their number
  readonly slowMs: number | undefined;
  readonly #bucketMs: number;
  readonly #buckets: number;
  readonly #rates: CircuitRates;
  readonly #clock: Clock;
  readonly #ring: Float64Array;
  #period: number;

  constructor(bucketMs: number, buckets: number, rates: CircuitRates, clock: Clock) {
    this.slowMs = rates.slowMs;
    this.#bucketMs = bucketMs;
    this.#buckets = buckets;
    this.#rates = rates;
    this.#clock = clock;
    this.#ring = new Float64Array(buckets * WIDTH);
    this.#period = this.#now();
  }

  get failures(): number {
    this.#turn();
    return this.#counts().failures;
  }

  record(isFailure: boolean, isSlow: boolean): boolean {
    this.#turn();
    this.#add(this.#period, 1, isFailure ? 1 : 0, isSlow ? 1 : 0);
    return (isFailure || isSlow) && this.#rates.exceededBy(this.#counts());
  }

  /** Bucket by bucket, the oldest first. */
  save(): readonly number[] {
    this.#turn();
    const oldest = ((this.#period + 1) % this.#buckets) * WIDTH;
    return [...this.#ring.subarray(oldest), ...this.#ring.subarray(0, oldest)];
  }

  restore(saved: readonly number[], agoMs: number): void {
    if (saved.length !== this.#ring.length)
      throw new RangeError(`counts must have a length of ${this.#ring.length}, got ${saved.length}`);
    for (const [index, count] of saved.entries()) {
      const calls = saved[index - (index % WIDTH)] ?? 0;
      if (checkInteger("count", count, { min: 0 }) > calls)
        throw new RangeError(`count must be no more than the bucket's calls, which are ${calls}, got ${count}`);
    }
    this.#ring.fill(0);
    this.#period = this.#now();
    const newest = this.#period - Math.floor(agoMs / this.#bucketMs);
    for (let age = 0; age < this.#buckets - (this.#period - newest); age += 1) {
      const [calls = 0, failures = 0, slow = 0] = saved.slice((this.#buckets - 1 - age) * WIDTH);
      this.#add(newest - age, calls, failures, slow);
    }
  }

  #now(): number {
    return Math.floor(coarseNow(this.#clock) / this.#bucketMs);
  }

  /** Empties the buckets of the periods that have begun since: all of them, if nobody has called for long. */
  #turn(): void {
    const period = this.#now();
    const passed = Math.min(period - this.#period, this.#buckets);
    for (let age = 0; age < passed; age += 1) {
      const at = this.#at(period - age);
      this.#ring.fill(0, at, at + WIDTH);
    }
    this.#period = Math.max(period, this.#period);
  }

  #at(period: number): number {
    return (((period % this.#buckets) + this.#buckets) % this.#buckets) * WIDTH;
  }

  #add(period: number, calls: number, failures: number, slow: number): void {
    const at = this.#at(period);
    this.#ring[at] = (this.#ring[at] ?? 0) + calls;
    this.#ring[at + 1] = (this.#ring[at + 1] ?? 0) + failures;
    this.#ring[at + 2] = (this.#ring[at + 2] ?? 0) + slow;
  }

  #counts(): CircuitCounts {
    let [calls, failures, slow] = [0, 0, 0];
    for (let at = 0; at < this.#ring.length; at += WIDTH) {
      calls += this.#ring[at] ?? 0;
      failures += this.#ring[at + 1] ?? 0;
      slow += this.#ring[at + 2] ?? 0;
    }
    return { calls, failures, slow };
  }
}
