/** No span of `perMs` ever holds more than `count` starts, and all of them may come at once. */
import { checkInteger, checkMs } from "../internal/check.ts";
import type { RateLimit, RateRule } from "./rate-rule.ts";

/**
 * The rule for a `RateLimiter` that is to count exactly what a provider counts: the sliding window log. It remembers the
 * last `count` starts, at 8 B each; where that is too much, `slidingWindowCounter`, and where starts should be spread, a
 * token bucket.
 */
export function slidingWindowLog(limit: RateLimit): RateRule {
  return new SlidingWindowLog(limit);
}

class SlidingWindowLog implements RateRule {
  // I1  #times holds the last starts in order, from #oldest on and round; -Infinity for those that never were
  #times = new Float64Array(0);
  #oldest = 0;
  #perMs = 0;

  constructor(limit: RateLimit) {
    this.setRate(limit);
  }

  get maxCost(): number {
    return this.#times.length;
  }

  /** The start that has to leave the window first, and one window more for each time all in it have to. */
  turnAt(cost: number, now: number, ahead: number): number {
    const last = ahead + cost - 1;
    const freeAt = this.#at(last) + this.#perMs;
    return Math.max(now, freeAt) + Math.floor(last / this.maxCost) * this.#perMs;
  }

  take(cost: number, now: number): void {
    for (let start = 0; start < cost; start += 1) {
      this.#times[this.#oldest] = now;
      this.#oldest = (this.#oldest + 1) % this.maxCost;
    }
  }

  /** It never was: the latest that it may have been leave the log. */
  giveBack(cost: number, takenAt: number): void {
    const times = this.#inOrder();
    const end = times.findLastIndex((at) => at <= takenAt) + 1;
    times.splice(Math.max(0, end - cost), Math.min(cost, end));
    this.#keep(times, this.maxCost);
  }

  setRate({ count, perMs }: RateLimit): void {
    checkInteger("count", count, { min: 1 });
    this.#perMs = checkMs("perMs", perMs, { min: 1 });
    this.#keep(this.#inOrder(), count);
  }

  #at(place: number): number {
    return this.#times[(this.#oldest + place) % this.maxCost] as number;
  }

  #inOrder(): number[] {
    return Array.from(this.#times, (_, place) => this.#at(place));
  }

  #keep(times: readonly number[], count: number): void {
    const kept = times.slice(-count);
    this.#times = new Float64Array(count).fill(-Infinity);
    this.#times.set(kept, count - kept.length);
    this.#oldest = 0;
  }
}
