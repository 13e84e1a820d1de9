/** How a `RateLimiter` decides when the next may start. Who waits, and in which order, is no business of a rule's. */
import { checkInteger } from "../internal/check.ts";

export interface RateLimit {
  /** Starts allowed per `perMs`. An integer >= 1. */
  readonly count: number;
  /** At least 1. */
  readonly perMs: number;
}

/** All instants are those of one monotonic clock, and none is asked about that is before the last that was taken. */
export interface RateRule {
  /** More than this at once is never allowed. */
  readonly maxCost: number;
  /**
   * The first instant, from `now` on, at which `cost` may start after `ahead` others that start as soon as they may. With
   * nobody ahead it is exact: up to `now` if they may start now, and what it says stays right until something is taken.
   * Else it is never too late.
   */
  turnAt(cost: number, now: number, ahead: number): number;
  /** `cost` start now, whether they may or not: what was used beyond an estimate counts, too. */
  take(cost: number, now: number): void;
  /**
   * Of what was taken at `takenAt`, `cost` have not started, and `used` have. Gives back no more than could not have been
   * used since.
   */
  giveBack(cost: number, takenAt: number, now: number, used?: number): void;
  /** Another limit from now on, with neither debt nor gift. Left out where there isn't one limit to change. */
  setRate?(limit: RateLimit, now: number): void;
}

export function checkCost(cost: number, maxCost: number): number {
  checkInteger("cost", cost, { min: 1 });
  if (cost <= maxCost) return cost;
  throw new RangeError(`cost must be <= ${maxCost}, got ${cost}`);
}
