/**
 * Loading cache: keeps what its loader got, up to a bound, and loads each key once for all who ask meanwhile. Which
 * entry has to go is `Sieve`'s choice. Without a timer: what is too old is found when it is asked for, and a little with
 * each insertion. All callers get the same object, so it is not theirs to change. If nothing is to be kept, use
 * `singleFlight`; for one value that is replaced as a whole, `Snapshot`.
 */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { SelfWaitError, TimeoutError } from "../errors.ts";
import { checkFunction, checkFunctions, checkInteger, checkMs, checkWait } from "../internal/check.ts";
import { coarseNow } from "../internal/coarse-now.ts";
import { keepModel } from "../internal/model.ts";
import { register } from "../internal/names.ts";
import { notice } from "../internal/probe.ts";
import { whenSettled } from "../internal/when-settled.ts";
import type { WaitOptions } from "../policy.ts";
import { CacheEntry } from "./cache-entry.ts";
import { CacheLoad } from "./cache-load.ts";
import type { CacheLoader, CacheOptions, CacheStats, EvictionReason, KeepOptions } from "./cache-options.ts";
import { follow, mayLeave } from "./follow.ts";
import type { Freshness } from "./freshness.ts";
import { append, ListEnd, unlink } from "./linked.ts";
import { LoadContext } from "./load-context.ts";
import { loadAround, LoadMark } from "./load-ring.ts";
import { Sieve } from "./sieve.ts";

export class Cache<K, V> {
  // I1  an entry is in #entries exactly while it has a value, a failure or a load
  // I2  a load is its entry's until it has ended, nobody waits for it, or the key was set or deleted since; only then is
  //     kept what it brings, since whatever came after it is newer
  // I3  what is kept is in #sieve: never more than maxEntries, nor more weight than maxWeight; loads are beside that
  // I4  a load is in #loads until it has ended, whosever it is
  readonly name: string | undefined;
  readonly #load: CacheLoader<K, V>;
  readonly #options: CacheOptions<K, V>;
  readonly #clock: Clock;
  readonly #sieve = new Sieve<CacheEntry<K, V>>();
  readonly #entries = new Map<unknown, CacheEntry<K, V>>();
  readonly #loads = new ListEnd();
  readonly #counts = { hits: 0, misses: 0, loads: 0, failures: 0, evicted: 0, expired: 0, replaced: 0, deleted: 0 };
  /** Whether a load has asked for something here: then any may. */
  #isNested = false;
  #drained: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined;
  /** Not before something has an end: an iterator that stays where it is keeps all that has come and gone since. */
  #hand: IterableIterator<CacheEntry<K, V>> | undefined;

  constructor(load: CacheLoader<K, V>, options: CacheOptions<K, V>) {
    checkFunction("load", load);
    checkInteger("maxEntries", options.maxEntries, { min: 1 });
    checkInteger("maxWeight", options.maxWeight ?? Infinity, { min: 0, infinity: true });
    checkMs("ttlMs", options.ttlMs ?? Infinity);
    checkFunctions(options, ["weigh", "keyOf", "onEvict"]);
    if (options.freshness !== undefined)
      checkFunction("freshness.begin", (options.freshness as Partial<Freshness> | null)?.begin);
    this.#load = load;
    this.#options = { ...options };
    this.#clock = options.clock ?? systemClock;
    this.name = options.name;
    register("cache", options, this);
  }

  /** Entries, also those that are too old. */
  get size(): number {
    return this.#sieve.size;
  }

  stats(): CacheStats {
    let [loading, oldestLoadMs] = [0, 0];
    for (let each = this.#loads.newer; each !== this.#loads; each = each.newer) {
      const load = each as CacheLoad<K, V>;
      if (load.entry.load !== load) continue;
      if (loading === 0) oldestLoadMs = this.#now() - load.startedAt;
      loading += 1;
    }
    return { entries: this.size, weight: this.#sieve.weight, loading, oldestLoadMs, ...this.#counts };
  }

  /** Whether there is a value that `load` would give at once. */
  has(key: K): boolean {
    return this.#live(this.#find(key)) !== undefined;
  }

  /** The value that `load` would give at once, if there is one. It doesn't count as a use. */
  peek(key: K): V | undefined {
    return this.#live(this.#find(key))?.value;
  }

  /** All values that `load` would give at once, in no order. */
  *[Symbol.iterator](): Iterator<[K, V]> {
    for (const entry of this.#entries.values())
      if (this.#live(entry) !== undefined) yield [entry.input, entry.value as V];
  }

  /**
   * The value: what is kept, or what the loader gets for all who ask meanwhile. An abort or `timeoutMs` ends this wait
   * only; the load is aborted when the last has left. With `timeoutMs` 0 nothing is loaded for who has to wait. A load
   * that would wait for itself gets `SelfWaitError` where the runtime knows: in Node from 24 on, if it is one of the first
   * 64 of this cache, or one of its loads has asked this cache for something before.
   */
  load(key: K, options?: WaitOptions): Promise<V> {
    if (options !== undefined || this.#options.keyOf !== undefined) return this.#ask(key, options);
    const entry = this.#entries.get(key);
    if (entry?.promise === undefined) return this.#look(key, key, entry, options);
    if (entry.dueAt < Infinity) {
      try {
        const now = this.#now();
        if (now >= entry.dueAt) return this.#look(key, key, entry, options);
        entry.life?.touch(now);
      } catch (error) {
        return Promise.reject(error);
      }
    }
    entry.isUsed = true;
    this.#counts.hits += 1;
    return entry.promise;
  }

  /** Keeps this value, whatever is being loaded. Throws for bad options, and what `weigh` throws; then all is as it was. */
  set(key: K, value: V, options: KeepOptions = {}): void {
    this.#keep(this.#id(key), key, "value", value, options);
  }

  /** Forgets the value, and won't keep what is being loaded now. Whether there was one. */
  delete(key: K): boolean {
    const entry = this.#find(key);
    return entry !== undefined && this.#delete(entry);
  }

  /**
   * As `delete`, for all keys of which `isGone` says so, those too that are being loaded: for a group of keys, such as all
   * of one tenant. It looks at each. Throws what `isGone` throws. How many values are gone.
   */
  deleteWhere(isGone: (key: K) => boolean): number {
    let count = 0;
    for (const [id, entry] of this.#entries) {
      const isOurs = isGone(entry.input) && this.#entries.get(id) === entry; // the predicate may do anything
      if (isOurs && this.#delete(entry)) count += 1;
    }
    return count;
  }

  /** As `delete`, for all keys. */
  clear(): void {
    this.deleteWhere(() => true);
    this.#hand = undefined; // or it would keep some of them
  }

  /** Resolves as soon as nothing is being loaded, in the background neither. It turns nobody away. */
  drain(options: WaitOptions = {}): Promise<void> {
    try {
      checkWait(options);
      if (this.#isDrained()) return Promise.resolve();
      if (options.timeoutMs === 0) throw new TimeoutError(0);
      this.#drained ??= Promise.withResolvers<void>();
      return follow(this.#drained.promise, options, this.#clock, () => {});
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #isDrained(): boolean {
    return this.#loads.newer === this.#loads;
  }

  /** Reading the time exactly would be most of what a hit costs. */
  #now(): number {
    return coarseNow(this.#clock);
  }

  #id(key: K): unknown {
    const { keyOf } = this.#options;
    return keyOf === undefined ? key : keyOf(key);
  }

  #find(key: K): CacheEntry<K, V> | undefined {
    return this.#entries.get(this.#id(key));
  }

  /** What `load` would give at once. */
  #live(entry: CacheEntry<K, V> | undefined): CacheEntry<K, V> | undefined {
    const now = this.#now();
    if (entry === undefined || !this.#sift(entry, now)) return undefined;
    return entry.kept === "value" && entry.isServed(now) ? entry : undefined;
  }

  /** Whether what is kept is of some use still. */
  #sift(entry: CacheEntry<K, V>, now: number): boolean {
    if (entry.kept === undefined) return false;
    if (!entry.isGone(now)) return true;
    this.#remove(entry, "expired");
    return false;
  }

  #ask(key: K, options: WaitOptions | undefined): Promise<V> {
    try {
      if (options !== undefined) checkWait(options);
      const id = this.#id(key);
      return this.#look(id, key, this.#entries.get(id), options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #look(id: unknown, key: K, entry: CacheEntry<K, V> | undefined, options: WaitOptions | undefined): Promise<V> {
    try {
      const now = this.#now();
      if (entry !== undefined && this.#sift(entry, now) && entry.isServed(now)) return this.#serve(entry, now);
      this.#counts.misses += 1;
      if (options?.timeoutMs === 0) throw new TimeoutError(0);
      const asker = loadAround();
      if (asker !== undefined) this.#isNested = true;
      const load = entry?.load ?? this.#start(this.#open(id, key), now, this.#options.finishLoads === true);
      if (load.result === undefined || load.mark?.admit(asker) === false) throw new SelfWaitError("load");
      load.callers += 1;
      if (!mayLeave(options)) return load.result;
      return follow(load.result, options, this.#clock, (reason) => this.#leave(load, asker, reason));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #serve(entry: CacheEntry<K, V>, now: number): Promise<V> {
    const { life } = entry;
    entry.isUsed = true;
    entry.dueAt = life?.touch(now) ?? entry.dueAt;
    this.#counts.hits += 1;
    if (entry.kept === "failure") return Promise.reject(entry.value);
    const promise = (entry.promise ??= Promise.resolve(entry.value as V));
    if (entry.load === undefined && now >= (life?.renewAt ?? Infinity)) this.#start(entry, now, true);
    return promise;
  }

  #leave(load: CacheLoad<K, V>, asker: LoadMark | undefined, reason: unknown): void {
    load.callers -= 1;
    load.mark?.dismiss(asker);
    if (load.callers === 0 && !load.isWanted && this.#part(load)) LoadContext.abort(load, reason);
  }

  #open(id: unknown, key: K): CacheEntry<K, V> {
    let entry = this.#entries.get(id);
    if (entry === undefined) this.#entries.set(id, (entry = new CacheEntry(id, key)));
    return entry;
  }

  #start(entry: CacheEntry<K, V>, now: number, isWanted: boolean): CacheLoad<K, V> {
    const { loads } = this.#counts;
    const isMarked = this.#isNested || loads < MARKED_FIRST || loads % MARKED_EACH === 0;
    const load = new CacheLoad<K, V>(entry, now, isWanted, isMarked ? new LoadMark() : undefined);
    entry.load = load; // before the call, which may come back here
    append(load, this.#loads);
    this.#counts.loads = loads + 1;
    load.result = whenSettled(
      this.#call(load),
      (value) => this.#land(load, value),
      (error) => this.#crash(load, error),
    );
    return load;
  }

  #call(load: CacheLoad<K, V>): V | PromiseLike<V> {
    const { entry, mark } = load;
    try {
      return mark === undefined ? this.#load(entry.input, load) : mark.run(() => this.#load(entry.input, load));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Whether it was its entry's until now. */
  #part(load: CacheLoad<K, V>): boolean {
    const { entry } = load;
    if (entry.load !== load) return false;
    entry.load = undefined;
    this.#tidy(entry);
    return true;
  }

  #land(load: CacheLoad<K, V>, value: V): V {
    const { key, input } = load.entry;
    try {
      if (load.entry.load === load) this.#keep(key, input, "value", value, load, load);
    } catch (error) {
      void Promise.reject(error); // of `weigh`, or a bad option: the value is right all the same
    }
    this.#end(load);
    return value;
  }

  #crash(load: CacheLoad<K, V>, error: unknown): V {
    const { freshness } = this.#options;
    const { entry } = load;
    this.#counts.failures += 1;
    try {
      if (freshness !== undefined && entry.load === load) {
        const now = this.#now();
        if (this.#sift(entry, now) && entry.kept === "value" && entry.life !== undefined) {
          freshness.hold(entry.life, now, error, entry.input);
          return entry.value as V;
        }
        this.#keep(entry.key, entry.input, "failure", error as V, { ttlMs: freshness.failureTtlMs }, load);
      }
    } catch (fault) {
      void Promise.reject(fault); // of the clock: the load has failed with its own error all the same
    } finally {
      this.#end(load);
    }
    if (load.callers > 0) throw error;
    if (load.isWanted) notice?.("failed", this, error); // else it was abandoned, and is nobody's
    return undefined as V; // nobody gets it
  }

  #end(load: CacheLoad<K, V>): void {
    this.#part(load);
    unlink(load);
    if (load.mark !== undefined) load.mark.isOver = true;
    if (this.#drained === undefined || !this.#isDrained()) return;
    this.#drained.resolve();
    this.#drained = undefined;
  }

  /** What `set` gives it, or this load of the key's. */
  #keep(id: unknown, key: K, kept: "value" | "failure", value: V, options: KeepOptions, load?: CacheLoad<K, V>): void {
    const { maxEntries, maxWeight = Infinity, weigh, freshness, ttlMs: usualMs } = this.#options;
    const absentMs = value === undefined || value === null ? freshness?.absentTtlMs : undefined;
    const ttlMs = checkMs("ttlMs", options.ttlMs ?? absentMs ?? usualMs ?? Infinity);
    if (freshness === undefined && options.idleMs !== undefined)
      throw new TypeError(`idleMs needs a cache with freshness, got ${options.idleMs}`);
    const weight =
      weigh === undefined || kept === "failure" ? 1 : checkInteger("weight", weigh(value, key), { min: 0 });
    const now = this.#now();
    const life = freshness?.begin(now, ttlMs, kept === "failure", options.idleMs);
    if (load !== undefined && load.entry.load !== load) return; // by what has just been called, which may do anything
    const entry = load?.entry ?? this.#open(id, key);
    const isReplaced = entry.kept !== undefined && !entry.isGone(now);
    if (entry.kept !== undefined) this.#drop(entry, isReplaced ? "replaced" : "expired");
    entry.load = undefined;
    if (weight > maxWeight || ttlMs === 0) return this.#tidy(entry);
    const dueAt = life?.touch(now) ?? now + ttlMs;
    if (dueAt < Infinity) this.#hand ??= this.#entries.values();
    for (let looks = LOOKS; looks > 0 && this.#hand !== undefined; looks -= 1) {
      const next = this.#hand.next();
      if (next.done === true) this.#hand = this.#entries.values();
      else this.#sift(next.value, now);
    }
    while (this.size >= maxEntries || this.#sieve.weight + weight > maxWeight)
      this.#remove(this.#sieve.pick(), "evicted");
    entry.kept = kept;
    entry.value = value;
    entry.dueAt = dueAt;
    entry.life = life;
    this.#sieve.add(entry, weight, isReplaced ? entry : undefined);
  }

  #delete(entry: CacheEntry<K, V>): boolean {
    const isKept = this.#sift(entry, this.#now());
    if (isKept) this.#remove(entry, "deleted");
    entry.load = undefined;
    this.#tidy(entry);
    return isKept;
  }

  #remove(entry: CacheEntry<K, V>, reason: EvictionReason): void {
    this.#drop(entry, reason);
    this.#tidy(entry);
  }

  #drop(entry: CacheEntry<K, V>, reason: EvictionReason): void {
    const { input, kept, value } = entry;
    const { onEvict } = this.#options;
    this.#sieve.remove(entry);
    this.#counts[reason] += 1;
    entry.kept = entry.value = entry.promise = entry.life = undefined;
    if (onEvict === undefined || kept === "failure") return;
    void Promise.resolve({ key: input, value: value as V, reason }).then(onEvict);
  }

  /** For an entry in #entries. */
  #tidy(entry: CacheEntry<K, V>): void {
    if (entry.kept === undefined && entry.load === undefined) this.#entries.delete(entry.key);
  }
}

/** With each insertion of what has an end, at others that may be too old; more than one, or the hand would follow what is new, and see nothing else. */
const LOOKS = 2;

/**
 * Which loads are known to the async context, so that one that waits for itself is found. Of a cache that no load has
 * asked for anything it is the first ones, and then one in so many: it takes as long as a third of a load.
 */
const MARKED_FIRST = 64;
const MARKED_EACH = 64;

keepModel(new Cache(Object, { maxEntries: 1 }));
