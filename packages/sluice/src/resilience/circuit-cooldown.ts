/**
 * A cooldown that grows each time a circuit breaker opens again without having been closed, and that heeds what the
 * server says. A dependency that is down for an hour isn't tried every half minute, by everybody at once.
 */
import { checkFunction, checkMs, checkNumber, checkShare } from "../internal/check.ts";
import { type Random, systemRandom } from "../internal/random.ts";
import type { CircuitOpening } from "./circuit-breaker.ts";
import { hintMs } from "./classify.ts";

export interface GrowingCooldownOptions {
  /** The first. At least 1. @default 30_000 */
  readonly baseMs?: number | undefined;
  /** None is longer, whatever the server says. At least `baseMs`. @default 600_000 */
  readonly maxMs?: number | undefined;
  /** How many times as long as the last the next is. At least 1. @default 2 */
  readonly factor?: number | undefined;
  /**
   * The share of it left to chance, from 0 to 1: with 0.2, it takes from 80 to 100 % of the time. What the server asked
   * for is never cut. @default 0
   */
  readonly jitter?: number | undefined;
  /** Draws what is left to chance: a number in [0, 1). @default Math.random */
  readonly random?: Random | undefined;
}

/**
 * For a breaker's `cooldown`: `baseMs * factor ** (openings - 1)`, or what the error that opened it asks for as
 * `retryAfterMs` if that is more, and never more than `maxMs`.
 */
export function growingCooldown(options: GrowingCooldownOptions = {}): (opening: CircuitOpening) => number {
  const { baseMs = 30_000, maxMs = 600_000, factor = 2, jitter = 0, random = systemRandom } = options;
  checkMs("baseMs", baseMs, { min: 1 });
  checkMs("maxMs", maxMs, { min: baseMs });
  checkNumber("factor", factor, { min: 1 });
  checkShare("jitter", jitter);
  checkFunction("random", random);
  return ({ openings, outcome }) => {
    const fullMs = Math.min(maxMs, baseMs * factor ** (openings - 1));
    const ownMs = fullMs * (1 - jitter * random());
    const askedMs = outcome?.status === "rejected" ? hintMs(outcome.reason) : 0;
    return Math.min(maxMs, Math.max(ownMs, askedMs));
  };
}
