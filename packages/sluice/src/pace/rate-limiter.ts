/**
 * Keyed rate limiter: at most so many starts per unit of time for each key, as a token bucket (`gcra`) in memory. It
 * bounds work against a limit per unit of time; for a bound on how much runs at once, use `Semaphore` or `Limiter`.
 */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { TimeoutError } from "../errors.ts";
import { checkInteger, checkMs, checkWait } from "../internal/check.ts";
import { type NameOptions, register } from "../internal/names.ts";
import type { Policy, Task, WaitOptions } from "../policy.ts";
import { Bucket, type BucketRules, type Counts } from "./bucket.ts";

export interface RateLimiterOptions extends NameOptions {
  /** Tokens that come back per `perMs`, evenly spread. An integer >= 1. */
  readonly count: number;
  /** At least 1. */
  readonly perMs: number;
  /**
   * Tokens in a full bucket: what a key that was quiet may start at once. Any span shorter than `perMs` holds at most
   * `count + burst - 1` starts: with 1 the starts are evenly spaced and no span holds more than `count`; with `count`
   * all of them may come at once, and the refill can bring one span to `2 * count - 1`. An integer >= 1. With 1, time that a late timer
   * or a busy event loop takes is lost; from 2 on it is made up for. @default 1
   */
  readonly burst?: number | undefined;
  /** Callers allowed to wait for each key; the next one gets `RateLimitedError`. An integer >= 0. @default Infinity */
  readonly maxWaiting?: number | undefined;
  /**
   * Keys remembered. Those whose bucket is full again are forgotten as others are used, by no timer. If none of those
   * looked at is, the fullest goes and has a full bucket when it returns (`stats().evicted` counts these); keys that
   * somebody waits for stay, beyond the bound if need be. An integer >= 1, or `Infinity`. @default 100_000
   */
  readonly maxKeys?: number | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

export interface RateLimiterTakeOptions extends WaitOptions {
  /** Tokens, from 1 to `burst`. @default 1 */
  readonly cost?: number | undefined;
}

export interface RateLimiterRunOptions extends RateLimiterTakeOptions {
  /** Whose bucket pays. Without one, the bucket that all calls without a key share. */
  readonly key?: string | undefined;
}

export type RateLimiterStats = Readonly<{
  /** Remembered now; a few more than are not full again. */
  keys: number;
  waiting: number;
  /** Age of the longest wait that goes on; 0 if nobody waits. */
  oldestWaitMs: number;
  /** Takes that got their tokens, and takes turned away because there were none or too many waited. */
  granted: number;
  rejected: number;
  /** Takes that got no token, because of their `timeoutMs` or because their signal aborted while they waited. */
  timedOut: number;
  aborted: number;
  /** Keys forgotten too early, for want of room. */
  evicted: number;
}>;

export class RateLimiter implements Policy {
  // I1  #buckets holds at most #maxKeys keys beside those somebody waits for
  // I2  a key that is not in #buckets has a full bucket and no line
  readonly name: string | undefined;
  readonly #maxKeys: number;
  readonly #rules: BucketRules;
  readonly #counts: Counts = { granted: 0, rejected: 0, timedOut: 0, aborted: 0, lines: new Set() };
  readonly #shared: Bucket;
  readonly #buckets = new Map<string, Bucket>();
  #hand = this.#buckets.values();
  #evicted = 0;

  constructor(options: RateLimiterOptions) {
    const count = checkInteger("count", options.count, { min: 1 });
    const perMs = checkMs("perMs", options.perMs, { min: 1 });
    this.#rules = {
      intervalMs: Math.ceil((perMs / count) * GRAINS_PER_MS) / GRAINS_PER_MS,
      burst: checkInteger("burst", options.burst ?? 1, { min: 1 }),
      maxWaiting: checkInteger("maxWaiting", options.maxWaiting ?? Infinity, { min: 0, infinity: true }),
      clock: options.clock ?? systemClock,
      counts: this.#counts,
    };
    this.#maxKeys = checkInteger("maxKeys", options.maxKeys ?? 100_000, { min: 1, infinity: true });
    this.#shared = new Bucket("", this.#rules);
    this.name = options.name;
    register("rate-limiter", options, this);
  }

  /** How long until `cost` tokens will be there, if all that wait stay; 0 if `tryTake` would succeed. */
  retryAfterMs(key?: string, cost = 1): number {
    this.#checkCost(cost);
    const bucket = key === undefined ? this.#shared : this.#buckets.get(key);
    return bucket === undefined ? 0 : bucket.retryAfterMs(cost);
  }

  stats(): RateLimiterStats {
    const { granted, rejected, lines } = this.#counts;
    const all = [...lines].map(({ waits }) => waits);
    return {
      keys: this.#buckets.size,
      waiting: all.reduce((sum, { size }) => sum + size, 0),
      oldestWaitMs: all.reduce((oldest, waits) => Math.max(oldest, waits.oldestWaitMs(this.#rules.clock)), 0),
      granted,
      rejected,
      timedOut: all.reduce((sum, { timedOut }) => sum + timedOut, this.#counts.timedOut),
      aborted: all.reduce((sum, { aborted }) => sum + aborted, this.#counts.aborted),
      evicted: this.#evicted,
    };
  }

  /** Calls `fn` once its tokens are there: at once, or after those who came before. They come back only if it isn't called. */
  async run<T>(fn: Task<T>, options: RateLimiterRunOptions = {}): Promise<T> {
    checkWait(options);
    const { key, cost = 1, signal } = options;
    const now = this.#rules.clock.now();
    const bucket = this.#find(key, cost, now);
    if (!bucket.tryTake(now, cost)) await this.#wait(bucket, options, cost);
    if (signal?.aborted === true) bucket.giveBack(cost); // the abort may have come between the grant and this turn
    signal?.throwIfAborted();
    return await fn({ signal });
  }

  /** Resolves once `cost` tokens have been taken for the key, first come, first served. They are not given back. */
  take(key?: string, options: RateLimiterTakeOptions = {}): Promise<void> {
    try {
      checkWait(options);
      const { cost = 1 } = options;
      const now = this.#rules.clock.now();
      const bucket = this.#find(key, cost, now);
      return bucket.tryTake(now, cost) ? Promise.resolve() : this.#wait(bucket, options, cost);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Takes `cost` tokens now, or none. Overtakes nobody: false while others wait for the key. */
  tryTake(key?: string, cost = 1): boolean {
    const now = this.#rules.clock.now();
    const taken = this.#find(key, cost, now).tryTake(now, cost);
    if (!taken) this.#counts.rejected += 1;
    return taken;
  }

  #wait(bucket: Bucket, options: RateLimiterTakeOptions, cost: number): Promise<void> {
    if (options.timeoutMs !== 0) return bucket.wait(options, cost);
    this.#counts.timedOut += 1;
    throw new TimeoutError(0);
  }

  #find(key: string | undefined, cost: number, now: number): Bucket {
    this.#checkCost(cost);
    if (key === undefined) return this.#shared;
    this.#look(now);
    const known = this.#buckets.get(key);
    if (known !== undefined) return known;
    if (typeof key !== "string") throw new TypeError(`key must be a string, got ${typeof key}`);
    if (this.#buckets.size >= this.#maxKeys) this.#makeRoom(now);
    const bucket = new Bucket(key, this.#rules);
    this.#buckets.set(key, bucket);
    return bucket;
  }

  #checkCost(cost: number): void {
    const { burst } = this.#rules;
    checkInteger("cost", cost, { min: 1 });
    if (cost > burst) throw new RangeError(`cost must be <= burst, which is ${burst}, got ${cost}`);
  }

  /** Looks at the key that is next, round and round, and forgets it if its bucket is full: one with each call. */
  #look(now: number): Bucket | undefined {
    let next = this.#hand.next();
    if (next.done === true) {
      this.#hand = this.#buckets.values();
      next = this.#hand.next();
    }
    const bucket = next.value;
    if (bucket?.isIdle(now) === true) this.#buckets.delete(bucket.key);
    return bucket;
  }

  #makeRoom(now: number): void {
    let fullest: Bucket | undefined;
    for (let looks = 0; looks < this.#buckets.size && (looks < LOOKS || fullest === undefined); looks += 1) {
      const bucket = this.#look(now);
      if (bucket === undefined || this.#buckets.size < this.#maxKeys) return;
      if (bucket.line === undefined && bucket.tat < (fullest?.tat ?? Infinity)) fullest = bucket;
    }
    if (fullest !== undefined && this.#buckets.delete(fullest.key)) this.#evicted += 1;
  }
}

/** Intervals are rounded up to a whole number of these, so that sums of them are exact and never let one too many in. */
const GRAINS_PER_MS = 2 ** 20;

/** How many keys are compared before one must go. */
const LOOKS = 8;
