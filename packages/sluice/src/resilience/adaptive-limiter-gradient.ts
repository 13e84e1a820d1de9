/**
 * Finds the limit by latency alone, after `GradientLimit` and `Gradient2Limit` of Netflix's concurrency-limits
 * (https://github.com/Netflix/concurrency-limits, Apache-2.0): the limit shrinks by how much slower calls are than when
 * nothing waits, and grows by a small queue, √limit. With a server whose latency is flat up to a knee and rises in
 * proportion from there, it settles near `tolerance` × the knee + √limit.
 *
 * What a call takes when nothing waits can't be seen under load, and it changes. There it is the least average of a
 * window, or a long average, which drifts upwards under lasting load and the limit with it. Here it is measured anew
 * from time to time, as BBR does with its `ProbeRTT` (https://www.ietf.org/archive/id/draft-ietf-ccwg-bbr-02.html): the
 * limit is halved for a window, and again while that makes calls quicker; then it is what it was.
 */
import { checkInteger, checkMs, checkNumber } from "../internal/check.ts";
import type { LimitRule, LimitSample, LimitStrategy } from "./adaptive-limiter-options.ts";

export interface GradientOptions {
  /** How many times slower than at rest calls may be before the limit shrinks. At least 1. @default 1.5 */
  readonly tolerance?: number | undefined;
  /** How far a window moves the limit towards what it says. Above 0, and at most 1. @default 0.2 */
  readonly smoothing?: number | undefined;
  /** How long calls are averaged over, at least. At least 0, and finite. @default 100 */
  readonly windowMs?: number | undefined;
  /** How many calls are averaged, at least. An integer >= 1. @default 10 */
  readonly minSamples?: number | undefined;
  /** How often latency at rest is measured anew, with half the limit or less for a few windows. At least 0. @default 10_000 */
  readonly probeIntervalMs?: number | undefined;
}

/** One window moves the limit no further down than to this share of it, before smoothing: a spike is not the end. */
const MAX_DROP = 0.5;
/** With half as many at once, calls that take more than this share of what they took had nothing to wait for before. */
const NO_QUICKER = 0.8;

/** A strategy for `AdaptiveLimiter` that keeps calls nearly as quick as when nothing waits. */
export function gradient(options: GradientOptions = {}): LimitStrategy {
  const { tolerance = 1.5, smoothing = 0.2, windowMs = 100, minSamples = 10, probeIntervalMs = 10_000 } = options;
  checkNumber("tolerance", tolerance, { min: 1 });
  if (checkNumber("smoothing", smoothing, { min: Number.MIN_VALUE }) > 1)
    throw new RangeError(`smoothing must be <= 1, got ${smoothing}`);
  checkMs("windowMs", windowMs, { min: 0 });
  checkInteger("minSamples", minSamples, { min: 1 });
  checkMs("probeIntervalMs", probeIntervalMs);
  const settings = { tolerance, smoothing, windowMs, minSamples, probeIntervalMs };
  return () => new Gradient(settings);
}

type Settings = Readonly<{ [K in keyof GradientOptions]-?: number }>;

class Gradient implements LimitRule {
  // I1  #before is the limit to go back to, exactly while less is being tried; #triedMs is what calls took at twice as much
  // I2  the window holds only calls that started since #since
  readonly #settings: Settings;
  #restMs = Infinity;
  #before: number | undefined;
  #triedMs = 0;
  #probedAt = -Infinity;
  #since = -Infinity;
  #openedAt: number | undefined;
  #totalMs = 0;
  #count = 0;
  #overloads = 0;
  #peak = 0;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  next(limit: number, { startedAt, endedAt, running, isOverload }: LimitSample): number {
    if (startedAt < this.#since) return limit;
    this.#openedAt ??= startedAt;
    this.#peak = Math.max(this.#peak, running);
    this.#count += 1;
    if (isOverload) this.#overloads += 1;
    else this.#totalMs += endedAt - startedAt;
    const { windowMs, minSamples } = this.#settings;
    if (this.#count < minSamples || endedAt - this.#openedAt < windowMs) return limit;
    const next = this.#judge(limit, endedAt);
    this.#openedAt = undefined;
    this.#totalMs = this.#count = this.#overloads = this.#peak = 0;
    return next;
  }

  /** What the window says. */
  #judge(limit: number, now: number): number {
    const well = this.#count - this.#overloads;
    const averageMs = this.#totalMs / Math.max(1, well);
    if (this.#before !== undefined) return this.#goOnProbing(limit, averageMs, now);
    // Who uses less than half of the limit learns nothing about it: it would drift away while there is little to do.
    if (this.#peak * 2 < limit && this.#overloads === 0) return limit;
    if (averageMs > 0) this.#restMs = Math.min(this.#restMs, averageMs); // 0 is less than the clock can tell
    if (now - this.#probedAt >= this.#settings.probeIntervalMs) return this.#probe(limit, limit, averageMs, now);
    const { tolerance, smoothing } = this.#settings;
    const slope = averageMs > 0 ? Math.min(1, (tolerance * this.#restMs) / averageMs) : 1;
    const target = limit * Math.max(MAX_DROP, slope * (well / this.#count)) + Math.sqrt(limit);
    return limit + (target - limit) * smoothing;
  }

  /** Tries half of `limit`. */
  #probe(before: number, limit: number, averageMs: number, now: number): number {
    this.#before = before;
    this.#triedMs = averageMs;
    this.#probedAt = this.#since = now;
    return limit / 2;
  }

  #goOnProbing(limit: number, averageMs: number, now: number): number {
    const before = this.#before ?? limit;
    if (averageMs > 0) this.#restMs = averageMs;
    if (averageMs < this.#triedMs * NO_QUICKER) return this.#probe(before, limit, averageMs, now);
    this.#before = undefined;
    return before;
  }
}
