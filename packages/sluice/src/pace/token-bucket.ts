/**
 * The rule that a `RateLimiter` has by default: the token bucket as one number, which is the instant at which it will be
 * full again (GCRA, see `gcra`).
 */
import { checkInteger, checkMs } from "../internal/check.ts";
import type { RateLimit, RateRule } from "./rate-rule.ts";

export interface TokenBucketLimit extends RateLimit {
  /**
   * Tokens in a full bucket: what may start at once after a quiet time. Any span shorter than `perMs` holds at most
   * `count + burst - 1` starts: with 1 the starts are evenly spaced and no span holds more than `count`; with `count`
   * all of them may come at once, and the refill can bring one span to `2 * count - 1`. An integer >= 1. With 1, time
   * that a late timer or a busy event loop takes is lost; from 2 on it is made up for. @default 1
   */
  readonly burst?: number | undefined;
}

export class TokenBucket implements RateRule {
  /** When it will be full. */
  tat: number = -Infinity;
  intervalMs = 0;
  maxCost = 1;

  constructor(limit: TokenBucketLimit) {
    this.#set(limit);
  }

  turnAt(cost: number, now: number, ahead: number): number {
    return Math.max(this.tat, now) + (ahead + cost - this.maxCost) * this.intervalMs;
  }

  take(cost: number, now: number): void {
    this.tat = Math.max(this.tat, now) + cost * this.intervalMs;
  }

  giveBack(cost: number, takenAt: number, now: number, used = 0): void {
    this.tat -= this.refundMs(cost, used, now - takenAt);
  }

  /** What goes back is less what has flowed back already, as far as that was not for what was used. */
  refundMs(cost: number, used: number, elapsedMs: number): number {
    return Math.max(0, cost * this.intervalMs - Math.max(0, elapsedMs - used * this.intervalMs));
  }

  /** As many tokens as before, of the new kind, and no more than now fit in. */
  setRate(limit: TokenBucketLimit, now: number): void {
    const { intervalMs, maxCost, tat } = this;
    this.#set(limit);
    this.tat = convert(tat, now, { intervalMs, maxCost }, this);
  }

  #set({ count, perMs, burst = this.maxCost }: TokenBucketLimit): void {
    checkInteger("burst", burst, { min: 1 });
    this.intervalMs = intervalOf(checkInteger("count", count, { min: 1 }), checkMs("perMs", perMs, { min: 1 }));
    this.maxCost = burst;
  }
}

type Bucket = Pick<TokenBucket, "intervalMs" | "maxCost">;

/** The `tat` of a bucket that holds what another held. */
export function convert(tat: number, now: number, from: Bucket, to: Bucket): number {
  if (from.intervalMs === to.intervalMs && from.maxCost === to.maxCost) return tat; // or each call would round it
  const missing = Math.max(0, tat - now) / from.intervalMs;
  return now + Math.max(0, missing + to.maxCost - from.maxCost) * to.intervalMs;
}

/**
 * Rounded up to a binary fraction that sums of many, and of the time, keep: so not one too many gets in, in 17 years of
 * uptime if it is above 1/16 ms. The rounding is below a thousandth of it.
 */
function intervalOf(count: number, perMs: number): number {
  const grainMs = 2 ** Math.min(-14, Math.floor(Math.log2(perMs / count)) - 10);
  return Math.ceil(perMs / count / grainMs) * grainMs;
}
