/**
 * A token bucket for each user, address or tenant, for millions of them: a bucket is one number in a table (see `gcra`).
 * Bounded, since keys often come from outside. For one limit, use `RateLimiter`.
 */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { checkInteger, checkMs, checkWait } from "../internal/check.ts";
import { register } from "../internal/names.ts";
import { notice } from "../internal/probe.ts";
import { type Random, systemRandom } from "../internal/random.ts";
import type { Task } from "../policy.ts";
import {
  RateLimiter,
  type RateReservation,
  type RateLimiterStats,
  type RateLimiterTakeOptions,
  type RateLineOptions,
} from "./rate-limiter.ts";
import { checkCost } from "./rate-rule.ts";
import { type RateKey, RateTable } from "./rate-table.ts";
import { convert, TokenBucket, type TokenBucketLimit } from "./token-bucket.ts";

export interface KeyedRateLimiterOptions extends TokenBucketLimit, RateLineOptions {
  /** Callers allowed to wait for each key; the next one gets `RateLimitedError`. An integer >= 0. @default Infinity */
  readonly maxWaiting?: number | undefined;
  /**
   * Keys remembered. Those whose bucket is full again are forgotten as others are used, by no timer. If none of those
   * looked at is, the fullest goes and has a full bucket when it returns (`stats().evicted` counts these). Keys that
   * somebody waits for stay, and don't count. An integer >= 1, or `Infinity`. @default 1_000_000
   */
  readonly maxKeys?: number | undefined;
  /** Seeds the hash of the keys, so that nobody can choose some that collide. @default systemRandom */
  readonly random?: Random | undefined;
}

export type KeyedRateLimiterStats = RateLimiterStats &
  Readonly<{
    /** Remembered now; a few more than are not full again. */
    keys: number;
    /** Keys forgotten too early, for want of room. */
    evicted: number;
  }>;

export class KeyedRateLimiter {
  // I1  a key is in #lines while somebody waits for it; else its bucket is in #table, or full
  // I2  #table has at most #maxKeys keys
  readonly name: string | undefined;
  readonly #limit: TokenBucket;
  readonly #maxKeys: number;
  readonly #line: RateLineOptions;
  readonly #clock: Clock;
  readonly #table: RateTable;
  readonly #lines = new Map<RateKey, Line>();
  #rate: TokenBucketLimit;
  #granted = 0;
  #rejected = 0;
  #timedOut = 0;
  #aborted = 0;
  #evicted = 0;

  constructor(options: KeyedRateLimiterOptions) {
    this.#limit = new TokenBucket(options);
    this.#maxKeys = checkInteger("maxKeys", options.maxKeys ?? 1_000_000, { min: 1, infinity: true });
    const { clock = systemClock, maxWaiting = Infinity, count, perMs, burst } = options;
    this.#clock = clock;
    this.#line = { clock, maxWaiting };
    this.#rate = { count, perMs, burst };
    checkInteger("maxWaiting", maxWaiting, { min: 0, infinity: true }); // now, not at the first wait
    this.#table = new RateTable(options.random ?? systemRandom);
    this.name = options.name;
    register("keyed-rate-limiter", options, this);
  }

  stats(): KeyedRateLimiterStats {
    const all = [...this.#lines.values()].map((line) => line.stats());
    const sum = (of: (stats: RateLimiterStats) => number): number => all.reduce((total, each) => total + of(each), 0);
    return {
      keys: this.#table.size + all.length,
      waiting: sum(({ waiting }) => waiting),
      oldestWaitMs: all.reduce((oldest, { oldestWaitMs }) => Math.max(oldest, oldestWaitMs), 0),
      granted: this.#granted + sum(({ granted }) => granted),
      rejected: this.#rejected + sum(({ rejected }) => rejected),
      timedOut: this.#timedOut + sum(({ timedOut }) => timedOut),
      aborted: this.#aborted + sum(({ aborted }) => aborted),
      evicted: this.#evicted,
    };
  }

  /** How long until the key has `cost` tokens, if all that wait for it stay; 0 if it has them. A question makes no key. */
  retryAfterMs(key: RateKey, cost = 1): number {
    this.#check(key, cost);
    const line = this.#lines.get(key);
    if (line !== undefined) return line.retryAfterMs(cost);
    const now = this.#clock.now();
    return Math.max(0, this.#allowedAt(this.#tat(key, now), cost) - now);
  }

  /** Calls `fn` once the key's tokens are there. They come back only if it isn't called. */
  async run<T>(key: RateKey, fn: Task<T>, options: RateLimiterTakeOptions = {}): Promise<T> {
    const { signal } = options;
    if (!this.#admits(key, options)) await this.#wait(key, options);
    if (signal?.aborted === true) this.#adjust(key, options.cost ?? 1, Infinity, 0, 1); // it may have come since the grant
    signal?.throwIfAborted();
    return await fn({ signal });
  }

  /** As `RateLimiter.take`, for the key: first come, first served. */
  take(key: RateKey, options: RateLimiterTakeOptions = {}): Promise<void> {
    try {
      return this.#admits(key, options) ? Promise.resolve() : this.#wait(key, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Takes `cost` tokens of the key now, or none. Overtakes nobody: false while others wait for it. */
  tryTake(key: RateKey, cost = 1): boolean {
    const isTaken = this.#tryTake(key, cost);
    if (!isTaken) {
      this.#rejected += 1;
      notice?.("rejected", this);
    }
    return isTaken;
  }

  /** As `RateLimiter.reserve`, for the key. */
  reserve(key: RateKey, cost = 1): RateReservation {
    this.#check(key, cost);
    const line = this.#lines.get(key) ?? this.#open(key);
    try {
      return line.reserve(cost);
    } finally {
      if (line.waiting === 0) this.#close(key, line); // it was granted at once
    }
  }

  /** Nobody starts for the key for so long from now. Finite, at least 0. After that it has one token, and others as they come. */
  pauseFor(key: RateKey, ms: number): void {
    this.#check(key, 1);
    checkMs("ms", ms, { min: 0 });
    const now = this.#clock.now();
    const tat = now + ms + (this.#limit.maxCost - 1) * this.#limit.intervalMs;
    const line = this.#lines.get(key);
    if (line === undefined) this.#keep(key, Math.max(this.#tat(key, now), tat), now);
    else line.put(Math.max(line.bucket.tat, tat));
  }

  /** Another limit from now on for all keys, as `RateLimiter.setRate`. Takes as long as going through all keys does. */
  setRate(limit: TokenBucketLimit): void {
    const now = this.#clock.now();
    const { intervalMs, maxCost } = this.#limit;
    this.#limit.setRate(limit, now);
    this.#rate = { ...limit, burst: this.#limit.maxCost };
    this.#table.map((tat) => convert(tat, now, { intervalMs, maxCost }, this.#limit));
    for (const line of this.#lines.values()) line.setRate(limit);
  }

  /** Throws for bad options, and the signal's reason if it is aborted already. */
  #admits(key: RateKey, options: RateLimiterTakeOptions): boolean {
    checkWait(options);
    return this.#tryTake(key, options.cost);
  }

  #tryTake(key: RateKey, cost = 1): boolean {
    this.#check(key, cost);
    if (this.#lines.size > 0 && this.#lines.has(key)) return false;
    const now = this.#clock.now();
    const table = this.#table;
    this.#sweep(now);
    const slot = table.find(key);
    const tat = slot === -1 ? now : Math.max(now, table.get(slot));
    if (this.#allowedAt(tat, cost) > now) return false;
    this.#granted += 1;
    const next = tat + cost * this.#limit.intervalMs;
    if (slot === -1) this.#add(next, now);
    else table.set(slot, next);
    return true;
  }

  #wait(key: RateKey, options: RateLimiterTakeOptions): Promise<void> {
    const line = this.#lines.get(key) ?? this.#open(key);
    const granted = line.take(options);
    if (line.waiting === 0) this.#close(key, line); // it was turned away
    return granted;
  }

  #open(key: RateKey): Line {
    const line = new Line(this.#rate, this.#line, {
      onIdle: (ended) => this.#close(key, ended),
      adjust: (...change) => this.#adjust(key, ...change),
    });
    const slot = this.#table.find(key);
    if (slot !== -1) {
      line.bucket.tat = this.#table.get(slot);
      this.#table.remove(slot);
    }
    this.#lines.set(key, line);
    return line;
  }

  #close(key: RateKey, line: Line): void {
    if (this.#lines.get(key) !== line) return;
    this.#lines.delete(key);
    const { granted, rejected, timedOut, aborted } = line.stats();
    this.#granted += granted;
    this.#rejected += rejected;
    this.#timedOut += timedOut;
    this.#aborted += aborted;
    this.#keep(key, line.bucket.tat, this.#clock.now());
  }

  /** Wherever the bucket of the key is by now: see `RateLimiter.adjust`. */
  #adjust(key: RateKey, cost: number, takenAt: number, used: number, grants: number): void {
    const now = this.#clock.now();
    this.#granted -= grants;
    const refundMs =
      cost < 0 ? cost * this.#limit.intervalMs : this.#limit.refundMs(cost, used, Math.max(0, now - takenAt));
    const line = this.#lines.get(key);
    if (line === undefined) {
      if (cost < 0 || this.#table.find(key) !== -1) this.#keep(key, this.#tat(key, now) - refundMs, now);
    } else line.put((cost < 0 ? Math.max(line.bucket.tat, now) : line.bucket.tat) - refundMs);
  }

  #check(key: RateKey, cost: number): void {
    if (typeof key !== "string" && !Number.isSafeInteger(key))
      throw new TypeError(`key must be a string or an integer, got ${typeof key === "number" ? key : typeof key}`);
    checkCost(cost, this.#limit.maxCost);
  }

  #allowedAt(tat: number, cost: number): number {
    return tat + (cost - this.#limit.maxCost) * this.#limit.intervalMs;
  }

  #tat(key: RateKey, now: number): number {
    const slot = this.#table.find(key);
    return slot === -1 ? now : Math.max(now, this.#table.get(slot));
  }

  #keep(key: RateKey, tat: number, now: number): void {
    const slot = this.#table.find(key);
    if (slot === -1) this.#add(tat, now);
    else this.#table.set(slot, tat);
  }

  /** For the key that was looked for last. */
  #add(tat: number, now: number): void {
    if (this.#table.size >= this.#maxKeys) this.#makeRoom(now);
    this.#table.add(tat);
  }

  /** Forgets a key if its bucket is full again: of the two places that come next, round and round. */
  #sweep(now: number): void {
    const slot = this.#table.nextInUse(2);
    if (slot !== -1 && this.#table.get(slot) <= now) this.#table.remove(slot);
  }

  #makeRoom(now: number): void {
    const table = this.#table;
    let fullest = table.nextInUse(Infinity);
    for (let looks = 1; looks < LOOKS && table.get(fullest) > now; looks += 1) {
      const slot = table.nextInUse(Infinity);
      if (table.get(slot) < table.get(fullest)) fullest = slot;
    }
    if (table.get(fullest) > now) this.#evicted += 1;
    table.remove(fullest);
  }
}

/** The limiter of all keys, as that of one sees it. */
interface Owner {
  onIdle(line: Line): void;
  adjust(cost: number, takenAt: number, used: number, grants: number): void;
}

/** Those who wait for one key, and its bucket meanwhile. */
class Line extends RateLimiter {
  readonly bucket: TokenBucket;
  readonly #owner: Owner;

  constructor(limit: TokenBucketLimit, options: RateLineOptions, owner: Owner) {
    const bucket = new TokenBucket(limit);
    super({ ...options, rule: bucket });
    this.bucket = bucket;
    this.#owner = owner;
  }

  put(tat: number): void {
    this.bucket.tat = tat;
    this.pauseFor(0); // which looks anew
  }

  protected override onIdle(): void {
    this.#owner.onIdle(this);
  }

  /** The reservation may outlive this line. */
  protected override adjust(...change: [cost: number, takenAt: number, used: number, grants: number]): void {
    this.#owner.adjust(...change);
  }
}

/** How many keys are compared before one must go. */
const LOOKS = 8;
