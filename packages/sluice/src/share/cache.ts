/**
 * Loading cache: keeps what its loader got, up to a bound, and loads each key once for all who ask meanwhile. Which
 * entry has to go is `Sieve`'s choice. Without a timer: what is too old is found when it is asked for, and a little with
 * each insertion. All callers get the same object, so it is not theirs to change. If nothing is to be kept, use
 * `singleFlight`; for one value that is replaced as a whole, `Snapshot`.
 */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { SelfWaitError, TimeoutError } from "../errors.ts";
import { checkFunction, checkInteger, checkMs, checkWait } from "../internal/check.ts";
import { register } from "../internal/names.ts";
import { notice } from "../internal/probe.ts";
import { whenSettled } from "../internal/when-settled.ts";
import type { WaitOptions } from "../policy.ts";
import { CacheEntry } from "./cache-entry.ts";
import { CacheLoad } from "./cache-load.ts";
import type {
  CacheLoadContext,
  CacheLoader,
  CacheOptions,
  CacheStats,
  EvictionReason,
  KeepOptions,
} from "./cache-options.ts";
import { follow, mayLeave } from "./follow.ts";
import { Sieve } from "./sieve.ts";

export class Cache<K, V> {
  // I1  a key has a load in #loads until that has ended, nobody waits for it, or the key was set or deleted since
  // I2  only a load that is in #loads is kept when it ends: whatever came after it is newer
  // I3  never more than maxEntries entries, nor more weight than maxWeight; loads are none
  readonly name: string | undefined;
  readonly #load: CacheLoader<K, V>;
  readonly #options: CacheOptions<K, V>;
  readonly #clock: Clock;
  readonly #sieve = new Sieve<K, CacheEntry<K, V>>();
  readonly #entries = this.#sieve.nodes;
  readonly #loads = new Map<K, CacheLoad<V>>();
  readonly #counts = { hits: 0, misses: 0, loads: 0, failures: 0, evicted: 0, expired: 0, replaced: 0, deleted: 0 };
  /** Not before something has an end: an iterator that stays where it is keeps all that has come and gone since. */
  #hand: IterableIterator<CacheEntry<K, V>> | undefined;

  constructor(load: CacheLoader<K, V>, options: CacheOptions<K, V>) {
    checkFunction("load", load);
    checkInteger("maxEntries", options.maxEntries, { min: 1 });
    checkInteger("maxWeight", options.maxWeight ?? Infinity, { min: 0, infinity: true });
    checkMs("ttlMs", options.ttlMs ?? Infinity);
    this.#load = load;
    this.#options = { ...options };
    this.#clock = options.clock ?? systemClock;
    this.name = options.name;
    register("cache", options, this);
  }

  /** Entries, also those that are too old. */
  get size(): number {
    return this.#entries.size;
  }

  stats(): CacheStats {
    const [oldest] = this.#loads.values();
    return {
      entries: this.size,
      weight: this.#sieve.weight,
      loading: this.#loads.size,
      oldestLoadMs: oldest === undefined ? 0 : this.#now() - oldest.startedAt,
      ...this.#counts,
    };
  }

  /** Whether there is a value that `load` would give at once. */
  has(key: K): boolean {
    return this.#live(key) !== undefined;
  }

  /** The value that `load` would give at once, if there is one. It doesn't count as a use. */
  peek(key: K): V | undefined {
    return this.#live(key)?.value;
  }

  /** All values that `load` would give at once, in no order. */
  *[Symbol.iterator](): Iterator<[K, V]> {
    for (const key of this.#entries.keys()) {
      const entry = this.#live(key);
      if (entry !== undefined) yield [key, entry.value];
    }
  }

  /**
   * The value: what is kept, or what the loader gets for all who ask meanwhile. An abort or `timeoutMs` ends this wait
   * only; the load is aborted when the last has left. With `timeoutMs` 0 nothing is loaded for who has to wait.
   */
  load(key: K, options?: WaitOptions): Promise<V> {
    const entry = this.#entries.get(key);
    if (options !== undefined || entry?.promise === undefined) return this.#look(key, entry, options);
    if (entry.dueAt < Infinity) {
      const now = this.#now();
      if (now >= entry.dueAt) return this.#look(key, entry, options);
      entry.life?.touch(now);
    }
    entry.isUsed = true;
    this.#counts.hits += 1;
    return entry.promise;
  }

  /** Keeps this value, whatever is being loaded. Throws what `weigh` throws; then all is as it was. */
  set(key: K, value: V, options: KeepOptions = {}): void {
    this.#keep(key, value, Promise.resolve(value), options);
    this.#loads.delete(key);
  }

  /** Forgets the value, and won't keep what is being loaded now. Whether there was one. */
  delete(key: K): boolean {
    this.#loads.delete(key);
    const entry = this.#find(key, this.#now());
    if (entry !== undefined) this.#remove(entry, "deleted");
    return entry !== undefined;
  }

  /** As `delete`, for all keys. */
  clear(): void {
    for (const key of [...this.#entries.keys(), ...this.#loads.keys()]) this.delete(key);
    this.#hand = undefined; // or it would keep some of them
  }

  /** Reading the time exactly would be most of what a hit costs. */
  #now(): number {
    return this.#clock.coarseNow?.() ?? this.#clock.now();
  }

  /** What `load` would give at once. */
  #live(key: K): CacheEntry<K, V> | undefined {
    const now = this.#now();
    const entry = this.#find(key, now);
    return entry?.promise !== undefined && now < (entry.life?.servedUntil ?? Infinity) ? entry : undefined;
  }

  /** What is of some use still. */
  #find(key: K, now: number): CacheEntry<K, V> | undefined {
    return this.#sift(this.#entries.get(key), now);
  }

  #sift(entry: CacheEntry<K, V> | undefined, now: number): CacheEntry<K, V> | undefined {
    if (entry?.isGone(now) !== true) return entry;
    this.#remove(entry, "expired");
    return undefined;
  }

  #look(key: K, found: CacheEntry<K, V> | undefined, options: WaitOptions | undefined): Promise<V> {
    try {
      if (options !== undefined) checkWait(options);
      const now = this.#now();
      const entry = this.#sift(found, now);
      if (entry !== undefined && now < (entry.life?.servedUntil ?? Infinity)) {
        const { life, promise } = entry;
        entry.isUsed = true;
        entry.dueAt = life?.touch(now) ?? entry.dueAt;
        this.#counts.hits += 1;
        if (now >= (life?.renewAt ?? Infinity) && !this.#loads.has(key)) this.#start(key, entry, true);
        return promise ?? Promise.reject(entry.value);
      }
      this.#counts.misses += 1;
      if (options?.timeoutMs === 0) throw new TimeoutError(0);
      const load = this.#loads.get(key) ?? this.#start(key, entry, this.#options.finishLoads);
      if (load.result === undefined) throw new SelfWaitError("load");
      load.callers += 1;
      if (!mayLeave(options)) return load.result;
      return follow(load.result, options, this.#clock, (reason) => {
        load.callers -= 1;
        if (load.callers === 0 && !load.isWanted && this.#end(key, load)) CacheLoad.abort(load, reason);
      });
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #start(key: K, old: CacheEntry<K, V> | undefined, isWanted = false): CacheLoad<V> {
    const load = new CacheLoad<V>(this.#now(), old?.value, isWanted);
    this.#loads.set(key, load); // before the call, which may come back here
    this.#counts.loads += 1;
    load.result = whenSettled(
      call(this.#load, key, load),
      (value) => this.#land(key, load, value),
      (error) => this.#crash(key, load, error),
    );
    return load;
  }

  /** Whether nothing newer has come, and somebody wanted it until now. */
  #end(key: K, load: CacheLoad<V>): boolean {
    return this.#loads.get(key) === load && this.#loads.delete(key);
  }

  #land(key: K, load: CacheLoad<V>, value: V): V {
    try {
      if (this.#end(key, load)) this.#keep(key, value, load.result, load);
    } catch (error) {
      void Promise.reject(error); // of `weigh`, or a bad `ttlMs`: the value is right all the same
    }
    return value;
  }

  #crash(key: K, load: CacheLoad<V>, error: unknown): V {
    this.#counts.failures += 1;
    const { freshness } = this.#options;
    if (this.#end(key, load) && freshness !== undefined) {
      const now = this.#now();
      const entry = this.#find(key, now);
      if (entry?.promise !== undefined && entry.life !== undefined) {
        freshness.hold(entry.life, now, error, key);
        return entry.value;
      }
      this.#keep(key, error as V, undefined, { ttlMs: freshness.failureTtlMs });
    }
    if (load.callers > 0) throw error;
    if (load.isWanted) notice?.("failed", this, error); // else it was abandoned, and is nobody's
    return undefined as V; // nobody gets it
  }

  #keep(key: K, value: V, promise: Promise<V> | undefined, options: KeepOptions): void {
    const { maxEntries, maxWeight = Infinity, weigh, freshness, ttlMs: usualMs } = this.#options;
    const absentMs = value === undefined || value === null ? freshness?.absentTtlMs : undefined;
    const ttlMs = checkMs("ttlMs", options.ttlMs ?? absentMs ?? usualMs ?? Infinity);
    const weight =
      weigh === undefined || promise === undefined ? 1 : checkInteger("weight", weigh(value, key), { min: 0 });
    const now = this.#now();
    const life = freshness?.begin(now, ttlMs, promise === undefined, options.idleMs);
    const before = this.#find(key, now);
    if (before !== undefined) this.#remove(before, "replaced");
    if (weight > maxWeight || ttlMs === 0) return;
    const dueAt = life?.touch(now) ?? now + ttlMs;
    if (dueAt < Infinity) this.#hand ??= this.#entries.values();
    for (let looks = LOOKS; looks > 0 && this.#hand !== undefined; looks -= 1) {
      const next = this.#hand.next();
      if (next.done === true) this.#hand = this.#entries.values();
      else this.#sift(next.value, now);
    }
    while (this.size >= maxEntries || this.#sieve.weight + weight > maxWeight)
      this.#remove(this.#sieve.pick(), "evicted");
    this.#sieve.add(new CacheEntry(key, value, promise, dueAt, life), weight, before);
  }

  #remove(entry: CacheEntry<K, V>, reason: EvictionReason): void {
    const { key, value, promise } = entry;
    const { onEvict } = this.#options;
    this.#sieve.remove(entry);
    this.#counts[reason] += 1;
    if (onEvict !== undefined && promise !== undefined) void Promise.resolve({ key, value, reason }).then(onEvict);
  }
}

/** With each insertion of what has an end, at others that may be too old; more than one, or the hand would follow what is new, and see nothing else. */
const LOOKS = 2;

function call<K, V>(load: CacheLoader<K, V>, key: K, context: CacheLoadContext<V>): V | PromiseLike<V> {
  try {
    return load(key, context);
  } catch (error) {
    return Promise.reject(error);
  }
}
