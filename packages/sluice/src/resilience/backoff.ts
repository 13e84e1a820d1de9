/**
 * How long to wait before trying again. A curve says how long at most: constant, linear or exponential; jitter draws from
 * below it. Clients that failed together return together, and a curve only moves their waves apart; a wait drawn from the
 * whole range below it dissolves them. The kinds of jitter are those of Marc Brooker's "Exponential Backoff And Jitter"
 * (AWS Architecture Blog, 2015, https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
 */
import { checkInteger, checkMs, checkNumber } from "../internal/check.ts";
import { type Random, systemRandom } from "../internal/random.ts";

/**
 * The wait in milliseconds after the attempt of this number, 1 for the first, that failed. It keeps nothing between
 * calls, so that one serves any number of runs. `Infinity` for no other attempt.
 */
export type Backoff = (attempt: number, context: BackoffContext) => number;

export interface BackoffContext {
  /** The wait before that attempt; 0 before the first. */
  readonly previousMs: number;
  /** What the attempt failed with, or its result. */
  readonly reason: unknown;
  readonly random: Random;
}

export interface BackoffOptions {
  /** Ceiling of the wait after the first attempt. At least 0. @default 100 */
  readonly baseMs?: number | undefined;
  /** Ceiling of all waits; may be `Infinity`. @default 10_000 */
  readonly maxMs?: number | undefined;
  /** How much the ceiling grows with each attempt. At least 1. @default 2 */
  readonly factor?: number | undefined;
}

export interface LinearBackoffOptions extends Omit<BackoffOptions, "factor"> {
  /** What each attempt adds. At least 0. @default baseMs */
  readonly stepMs?: number | undefined;
}

/** `min(maxMs, baseMs * factor ** (attempt - 1))`. Finite, however many attempts there were. */
export function exponentialBackoff(options: BackoffOptions = {}): Backoff {
  const { baseMs = 100, maxMs = 10_000, factor = 2 } = options;
  checkMs("baseMs", baseMs, { min: 0 });
  checkMs("maxMs", maxMs);
  checkNumber("factor", factor, { min: 1 });
  return (attempt) => baseMs && Math.min(maxMs, baseMs * factor ** (attempt - 1), Number.MAX_SAFE_INTEGER);
}

/** `min(maxMs, baseMs + stepMs * (attempt - 1))`. */
export function linearBackoff(options: LinearBackoffOptions = {}): Backoff {
  const { baseMs = 100, maxMs = 10_000, stepMs = baseMs } = options;
  checkMs("baseMs", baseMs, { min: 0 });
  checkMs("maxMs", maxMs);
  checkMs("stepMs", stepMs, { min: 0 });
  return (attempt) => Math.min(maxMs, baseMs + stepMs * (attempt - 1), Number.MAX_SAFE_INTEGER);
}

/** Always `ms`, at least 0. Without jitter, clients that failed together come back together each time. */
export function constantBackoff(ms: number): Backoff {
  checkMs("ms", ms, { min: 0 });
  return () => ms;
}

/** Drawn evenly from 0 up to what `curve` says. Of the three it makes the fewest calls of many clients meet. */
export function fullJitter(curve: Backoff): Backoff {
  return (attempt, context) => curve(attempt, context) * context.random();
}

/** Half of what `curve` says, and up to as much again: never so short as to be no wait. */
export function equalJitter(curve: Backoff): Backoff {
  return (attempt, context) => (curve(attempt, context) * (1 + context.random())) / 2;
}

/** Drawn evenly from `baseMs` up to three times the wait before, but no longer than `maxMs`. */
export function decorrelatedJitter(options: Omit<BackoffOptions, "factor"> = {}): Backoff {
  const { baseMs = 100, maxMs = 10_000 } = options;
  checkMs("baseMs", baseMs, { min: 0 });
  checkMs("maxMs", maxMs);
  return (_, { previousMs, random }) =>
    Math.min(maxMs, baseMs + random() * (Math.max(baseMs, 3 * previousMs) - baseMs), Number.MAX_SAFE_INTEGER);
}

/** The wait of exponential backoff with full jitter, for who has a way of its own to wait. */
export function backoffMs(attempt: number, options: BackoffOptions = {}, random: Random = systemRandom): number {
  checkInteger("attempt", attempt, { min: 1 });
  return exponentialBackoff(options)(attempt, { previousMs: 0, reason: undefined, random }) * random();
}
