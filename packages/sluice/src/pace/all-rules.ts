/** Several limits as one rule. */
import type { RateRule } from "./rate-rule.ts";
import { TokenBucket, type TokenBucketLimit } from "./token-bucket.ts";

/** The rule that a `RateLimiter` has by default, to be combined with others. */
export function tokenBucket(limit: TokenBucketLimit): RateRule {
  return new TokenBucket(limit);
}

/**
 * The rule for a `RateLimiter` of several limits, such as so many per second and so many per hour: what starts is charged
 * to all of them at one instant, and what one of them refuses to none. At least one. Each belongs to this one alone.
 */
export function allRules(...rules: readonly RateRule[]): RateRule {
  if (rules.length === 0) throw new RangeError("allRules needs at least one rule, got 0");
  return new AllRules(rules);
}

class AllRules implements RateRule {
  readonly maxCost: number;
  readonly #rules: readonly RateRule[];

  constructor(rules: readonly RateRule[]) {
    this.#rules = [...rules];
    this.maxCost = Math.min(...rules.map(({ maxCost }) => maxCost));
  }

  /** What one of them allows from an instant on it still allows later, if nothing is taken meanwhile. */
  turnAt(cost: number, now: number, ahead: number): number {
    let turnAt = -Infinity;
    for (const rule of this.#rules) turnAt = Math.max(turnAt, rule.turnAt(cost, now, ahead));
    return turnAt;
  }

  take(cost: number, now: number): void {
    for (const rule of this.#rules) rule.take(cost, now);
  }

  giveBack(cost: number, takenAt: number, now: number, used = 0): void {
    for (const rule of this.#rules) rule.giveBack(cost, takenAt, now, used);
  }
}
