/**
 * The token bucket as one number: the generic cell rate algorithm in its virtual scheduling form (ITU-T I.371, annex A;
 * ATM Forum Traffic Management 4.1). Instead of counting tokens it keeps the instant at which the bucket will be full
 * again, the theoretical arrival time or `tat`. Pure, so that whoever keeps `tat` in a table of their own has the limit
 * survive a restart. For limits that live in memory, use `RateLimiter`.
 *
 * Any instant may be the origin of `tat` and `now`, if it is the same for both. A key never seen has a `tat` of
 * `-Infinity`; so has, in effect, every key whose `tat` has passed.
 */
import { checkInteger } from "../internal/check.ts";

export interface GcraLimit {
  /** One token comes back this often. Above 0. */
  readonly intervalMs: number;
  /** Tokens in a full bucket. An integer >= 1; with 1, no two starts are closer than `intervalMs`. */
  readonly burst: number;
}

export interface GcraDecision {
  readonly allowed: boolean;
  /** To be kept; what was given if refused. */
  readonly tat: number;
  /** 0 if allowed; `Infinity` if `cost` is more than a full bucket holds. */
  readonly retryAfterMs: number;
}

export interface GcraReservation {
  /** To be kept. */
  readonly tat: number;
  /** When its turn comes, from now; 0 for at once. */
  readonly waitMs: number;
}

/** Takes `cost` tokens, or none: what is refused has cost nothing. */
export function gcra(tat: number, now: number, limit: GcraLimit, cost = 1): GcraDecision {
  const turnAt = turn(tat, now, limit, cost);
  if (cost > limit.burst) return { allowed: false, tat, retryAfterMs: Infinity };
  if (turnAt > now) return { allowed: false, tat, retryAfterMs: turnAt - now };
  return { allowed: true, tat: Math.max(tat, now) + cost * limit.intervalMs, retryAfterMs: 0 };
}

/**
 * Takes `cost` tokens in any case, ahead of time if need be, and says when they may be used: one place in a line that
 * is kept nowhere. More than `burst` at once waits until as much has come together.
 */
export function gcraReserve(tat: number, now: number, limit: GcraLimit, cost = 1): GcraReservation {
  const turnAt = turn(Math.max(tat, now), now, limit, cost);
  return { tat: Math.max(tat, now) + cost * limit.intervalMs, waitMs: Math.max(0, turnAt - now) };
}

/** The instant at which a bucket that is full at `tat` holds `cost` tokens. */
function turn(tat: number, now: number, { intervalMs, burst }: GcraLimit, cost: number): number {
  if (typeof intervalMs !== "number") throw new TypeError(`intervalMs must be a number, got ${typeof intervalMs}`);
  if (!(intervalMs > 0 && intervalMs < Infinity))
    throw new RangeError(`intervalMs must be finite and > 0, got ${intervalMs}`);
  checkInteger("burst", burst, { min: 1 });
  checkInteger("cost", cost, { min: 1 });
  if (typeof tat !== "number") throw new TypeError(`tat must be a number, got ${typeof tat}`);
  if (Number.isNaN(tat)) throw new RangeError("tat must be an instant or -Infinity, got NaN");
  if (!Number.isFinite(now)) throw new RangeError(`now must be an instant, got ${now}`);
  return tat - (burst - cost) * intervalMs;
}
