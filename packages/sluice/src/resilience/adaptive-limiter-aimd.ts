/**
 * Additive increase, multiplicative decrease, as in TCP (Chiu and Jain, 1989; RFC 5681): one place more for each round of
 * calls that goes well, a tenth less at a sign of overload, but not twice for calls that the same limit let in.
 */
import { checkMs, checkNumber, checkShare } from "../internal/check.ts";
import type { LimitRule, LimitSample, LimitStrategy } from "./adaptive-limiter-options.ts";

export interface AimdOptions {
  /** A call that takes longer is a sign of overload. At least 0; `Infinity` to go by failures alone. @default Infinity */
  readonly maxLatencyMs?: number | undefined;
  /** What is added after as many calls as the limit. Above 0. @default 1 */
  readonly increase?: number | undefined;
  /** What the limit is multiplied by at a sign of overload. From 0 to 1. @default 0.9 */
  readonly decrease?: number | undefined;
}

/** A strategy for `AdaptiveLimiter` that probes upwards until calls fail or take longer than `maxLatencyMs`. */
export function aimd(options: AimdOptions = {}): LimitStrategy {
  const { maxLatencyMs = Infinity, increase = 1, decrease = 0.9 } = options;
  checkMs("maxLatencyMs", maxLatencyMs);
  checkNumber("increase", increase, { min: Number.MIN_VALUE });
  checkShare("decrease", decrease);
  return () => new Aimd(maxLatencyMs, increase, decrease);
}

class Aimd implements LimitRule {
  readonly #maxLatencyMs: number;
  readonly #increase: number;
  readonly #decrease: number;
  #decreasedAt = -Infinity;

  constructor(maxLatencyMs: number, increase: number, decrease: number) {
    this.#maxLatencyMs = maxLatencyMs;
    this.#increase = increase;
    this.#decrease = decrease;
  }

  next(limit: number, { startedAt, endedAt, running, isOverload }: LimitSample): number {
    if (isOverload || endedAt - startedAt > this.#maxLatencyMs) {
      if (startedAt < this.#decreasedAt) return limit; // the limit that let it in is past
      this.#decreasedAt = endedAt;
      return limit * this.#decrease;
    }
    // Who uses less than half of the limit learns nothing about it: it would drift away while there is little to do.
    return running * 2 < limit ? limit : limit + this.#increase / limit;
  }
}
