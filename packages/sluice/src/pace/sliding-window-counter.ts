/** As the sliding window log, in a few numbers: no span of `perMs` ever holds more than `count` starts. */
import { checkInteger, checkMs } from "../internal/check.ts";
import type { RateLimit, RateRule } from "./rate-rule.ts";

export interface SlidingWindowCounterLimit extends RateLimit {
  /** Parts of the window that are counted apart. More of them give places back sooner. An integer >= 1. @default 10 */
  readonly parts?: number | undefined;
}

/**
 * The rule for a `RateLimiter` that counts starts by parts of the window, for high counts that a log would take too much
 * memory for. A place is free again after `perMs`, and up to one part of it more: so it errs to the safe side. The
 * counter that is known from web servers takes the last window to have been evenly used, and lets up to twice the count
 * through where it was not.
 */
export function slidingWindowCounter(limit: SlidingWindowCounterLimit): RateRule {
  return new SlidingWindowCounter(limit);
}

class SlidingWindowCounter implements RateRule {
  // I1  #counts[part % #counts.length] are the starts of that part, for the #counts.length parts up to #newest
  maxCost = 0;
  #counts: Float64Array;
  #partMs = 0;
  #newest = 0;

  constructor(limit: SlidingWindowCounterLimit) {
    this.#counts = new Float64Array(checkInteger("parts", limit.parts ?? 10, { min: 1 }) + 1);
    this.#set(limit);
  }

  turnAt(cost: number, now: number, ahead: number): number {
    const wanted = ahead + cost;
    const within = ((wanted - 1) % this.maxCost) + 1;
    const turnAt = this.#freeAt(within, now);
    if (within === wanted) return turnAt;
    const rounds = (wanted - within) / this.maxCost; // in each of which all places are taken, and given back
    return (this.#part(turnAt) + rounds * this.#counts.length) * this.#partMs;
  }

  take(cost: number, now: number): void {
    const part = this.#part(now);
    for (let next = Math.max(this.#newest + 1, part - this.#counts.length + 1); next <= part; next += 1)
      this.#put(next, 0);
    this.#newest = Math.max(this.#newest, part);
    this.#put(this.#newest, this.#count(this.#newest) + cost);
  }

  giveBack(cost: number, takenAt: number): void {
    let left = cost;
    for (let part = this.#part(takenAt); left > 0 && part > this.#newest - this.#counts.length; part -= 1) {
      const count = this.#count(part);
      this.#put(part, count - Math.min(left, count));
      left -= Math.min(left, count);
    }
  }

  /** As if what was counted so far had started at the end of its part. */
  setRate(limit: RateLimit, now: number): void {
    const [partMs, newest, counts] = [this.#partMs, this.#newest, this.#counts];
    this.#set(limit);
    if (partMs === this.#partMs) return;
    this.#counts = new Float64Array(counts.length);
    this.#newest = 0;
    for (let part = newest - counts.length + 1; part <= newest; part += 1)
      this.take(counts[modulo(part, counts.length)] as number, Math.min(now, (part + 1) * partMs));
  }

  #set({ count, perMs }: RateLimit): void {
    checkInteger("count", count, { min: 1 });
    this.#partMs = checkMs("perMs", perMs, { min: 1 }) / (this.#counts.length - 1);
    this.maxCost = count;
  }

  /** When so many places are free, if nobody takes one. */
  #freeAt(places: number, now: number): number {
    const parts = this.#counts.length;
    const first = Math.min(this.#part(now), this.#newest + parts) - parts + 1;
    let free = this.maxCost;
    for (let part = first; part <= this.#newest; part += 1) free -= this.#count(part);
    let freeAt = now;
    for (let part = first; free < places; part += 1) {
      free += this.#count(part);
      freeAt = (part + parts) * this.#partMs;
    }
    return freeAt;
  }

  #part(at: number): number {
    return Math.floor(at / this.#partMs);
  }

  #count(part: number): number {
    return part > this.#newest - this.#counts.length && part <= this.#newest
      ? (this.#counts[modulo(part, this.#counts.length)] as number)
      : 0;
  }

  #put(part: number, count: number): void {
    this.#counts[modulo(part, this.#counts.length)] = count;
  }
}

function modulo(value: number, by: number): number {
  return ((value % by) + by) % by;
}
