/**
 * A rate that learns from the answers what the other side allows: halved, and paused, when it says 429, and a little
 * higher again after each quiet while (additive increase, multiplicative decrease).
 */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { checkFunction, checkInteger, checkMs, checkNumber } from "../internal/check.ts";
import { type NameOptions, register } from "../internal/names.ts";
import type { Policy, Task } from "../policy.ts";
import type { RateLimiter, RateLimiterTakeOptions } from "./rate-limiter.ts";

export interface AdaptiveRateOptions extends NameOptions {
  /** Of the limiter, whose rate it is. At least 1. */
  readonly perMs: number;
  /** The limiter's own count, and the most it comes back to. An integer >= 1. */
  readonly maxCount: number;
  /** An integer from 1 to `maxCount`. @default 1 */
  readonly minCount?: number | undefined;
  /** What the count is multiplied by when a limit was hit. At least 0, below 1. @default 0.5 */
  readonly decrease?: number | undefined;
  /** What is added to it after each quiet `recoverMs`. An integer >= 1. @default a tenth of `maxCount` */
  readonly increase?: number | undefined;
  /**
   * How long after each change the next may come: answers that were on their way say nothing new. At least 1.
   * @default 10_000
   */
  readonly recoverMs?: number | undefined;
  /**
   * For how long the other side wants to be left alone, by an error that a call failed with or a value that it returned;
   * undefined if it has no such wish. What is no finite number of at least 0 counts as 0; what this throws is an unhandled
   * rejection, and the outcome is that of the call all the same. @default its `retryAfterMs` if its `status` is 429
   */
  readonly retryAfterMs?: ((outcome: unknown) => number | undefined) | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

export type AdaptiveRateStats = Readonly<{
  /** Allowed per `perMs` now. */
  count: number;
  /** Times that it was lowered and raised. */
  decreases: number;
  increases: number;
}>;

export class AdaptiveRate implements Policy {
  // I1  #minCount <= #count <= #maxCount
  readonly name: string | undefined;
  readonly #limiter: Pick<RateLimiter, "run" | "setRate" | "pauseFor">;
  readonly #perMs: number;
  readonly #maxCount: number;
  readonly #minCount: number;
  readonly #decrease: number;
  readonly #increase: number;
  readonly #recoverMs: number;
  readonly #retryAfterMs: (outcome: unknown) => number | undefined;
  readonly #clock: Clock;
  #count: number;
  #changedAt = -Infinity;
  #decreases = 0;
  #increases = 0;

  constructor(limiter: Pick<RateLimiter, "run" | "setRate" | "pauseFor">, options: AdaptiveRateOptions) {
    this.#limiter = limiter;
    this.#perMs = checkMs("perMs", options.perMs, { min: 1 });
    this.#maxCount = this.#count = checkInteger("maxCount", options.maxCount, { min: 1 });
    this.#minCount = checkInteger("minCount", options.minCount ?? 1, { min: 1 });
    if (this.#minCount > this.#maxCount)
      throw new RangeError(`minCount must be <= maxCount, which is ${this.#maxCount}, got ${this.#minCount}`);
    this.#decrease = checkNumber("decrease", options.decrease ?? 0.5, { min: 0 });
    if (this.#decrease >= 1) throw new RangeError(`decrease must be below 1, got ${this.#decrease}`);
    this.#increase = checkInteger("increase", options.increase ?? Math.ceil(this.#maxCount / 10), { min: 1 });
    this.#recoverMs = checkMs("recoverMs", options.recoverMs ?? 10_000, { min: 1 });
    this.#retryAfterMs = checkFunction("retryAfterMs", options.retryAfterMs ?? retryAfterOf);
    this.#clock = options.clock ?? systemClock;
    this.name = options.name;
    register("adaptive-rate", options, this);
  }

  get count(): number {
    return this.#count;
  }

  stats(): AdaptiveRateStats {
    return { count: this.#count, decreases: this.#decreases, increases: this.#increases };
  }

  /** Calls `fn` when the limiter allows it, and learns from what comes of it. Of a failure of another kind it learns nothing. */
  run<T>(fn: Task<T>, options?: RateLimiterTakeOptions): Promise<T> {
    return this.#limiter.run(async (context) => {
      let value: T;
      try {
        value = await fn(context);
      } catch (error) {
        this.#learn(error, true);
        throw error;
      }
      this.#learn(value, false);
      return value;
    }, options);
  }

  /** The other side has turned a call away, and wants to be left alone for so long. For calls that don't go through `run`. */
  limited(retryAfterMs = 0): void {
    this.#limiter.pauseFor(retryAfterMs);
    if (this.#change(Math.max(this.#minCount, Math.floor(this.#count * this.#decrease)))) this.#decreases += 1;
  }

  /** The other side has taken a call. */
  succeeded(): void {
    if (this.#change(Math.min(this.#maxCount, this.#count + this.#increase))) this.#increases += 1;
  }

  /** Never throws: the call has its outcome. */
  #learn(outcome: unknown, isFailure: boolean): void {
    try {
      const waitMs = this.#retryAfterMs(outcome);
      if (waitMs !== undefined) this.limited(waitMs > 0 && waitMs < Infinity ? waitMs : 0);
      else if (!isFailure) this.succeeded();
    } catch (error) {
      void Promise.reject(error); // seen as unhandled
    }
  }

  #change(count: number): boolean {
    const now = this.#clock.now();
    if (count === this.#count || now - this.#changedAt < this.#recoverMs) return false;
    this.#limiter.setRate({ count, perMs: this.#perMs });
    this.#count = count;
    this.#changedAt = now;
    return true;
  }
}

function retryAfterOf(outcome: unknown): number | undefined {
  const { status, retryAfterMs } = (outcome ?? {}) as { readonly status?: unknown; readonly retryAfterMs?: unknown };
  if (status !== 429) return undefined;
  return typeof retryAfterMs === "number" ? retryAfterMs : 0;
}
