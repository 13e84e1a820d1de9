/**
 * How long to wait before trying again: exponential backoff with full jitter, as in Marc Brooker's "Exponential Backoff
 * And Jitter" (AWS Architecture Blog, 2015, https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
 * Clients that failed together return together, and doubling only moves their waves apart; a wait drawn from the whole
 * range below the ceiling dissolves them.
 */
import { checkInteger, checkMs, checkNumber } from "../internal/check.ts";
import { type Random, systemRandom } from "../internal/random.ts";

export interface BackoffOptions {
  /** Ceiling of the wait after the first attempt. At least 0. @default 100 */
  readonly baseMs?: number | undefined;
  /** Ceiling of all waits; may be `Infinity`. @default 10_000 */
  readonly maxMs?: number | undefined;
  /** How much the ceiling grows with each attempt. At least 1. @default 2 */
  readonly factor?: number | undefined;
}

/**
 * The wait after the attempt of this number, 1 for the first, that failed: evenly drawn from 0 up to, not including,
 * `min(maxMs, baseMs * factor ** (attempt - 1))`. Finite, however many attempts there were.
 */
export function backoffMs(attempt: number, options: BackoffOptions = {}, random: Random = systemRandom): number {
  checkInteger("attempt", attempt, { min: 1 });
  const { baseMs, maxMs, factor } = checkBackoff(options);
  const ceilingMs = baseMs === 0 ? 0 : Math.min(maxMs, baseMs * factor ** (attempt - 1), Number.MAX_SAFE_INTEGER);
  return random() * ceilingMs;
}

/** The options with their defaults. */
export function checkBackoff(options: BackoffOptions): { baseMs: number; maxMs: number; factor: number } {
  const { baseMs = 100, maxMs = 10_000, factor = 2 } = options;
  checkMs("baseMs", baseMs, { min: 0 });
  checkMs("maxMs", maxMs);
  checkNumber("factor", factor, { min: 1 });
  return { baseMs, maxMs, factor };
}
