/**
 * A circuit breaker for each provider, origin or tenant, made when its key is first used and forgotten when the key has
 * not been used for long. Bounded, since keys often come from outside: a flood of them must neither fill the memory nor
 * make open breakers forget.
 */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { checkFunction, checkInteger, checkMs } from "../internal/check.ts";
import { coarseNow } from "../internal/coarse-now.ts";
import { register } from "../internal/names.ts";
import type { Task, WaitOptions } from "../policy.ts";
import { type CircuitChange, CircuitBreaker, type CircuitBreakerOptions } from "./circuit-breaker.ts";

export interface KeyedCircuitBreakerOptions<K = string> extends Omit<CircuitBreakerOptions, "onStateChange"> {
  /**
   * Keys remembered. When there is no room, the closed breaker goes that has not been used for longest, one without
   * calls under way before any other. Those that are open or have a `mode` stay unless there is no other: then it is the
   * one of them that has not been used for longest. An integer >= 1, or `Infinity`. @default 10_000
   */
  readonly maxKeys?: number | undefined;
  /**
   * A key that has not been used for so long is forgotten by one of the next calls, with what its breaker has counted,
   * unless it is open, has calls under way or a `mode`. At least 1. @default 600_000
   */
  readonly idleMs?: number | undefined;
  /** As a breaker's own. */
  readonly onStateChange?: ((change: KeyedCircuitChange<K>) => void) | undefined;
}

export interface KeyedCircuitChange<K = string> extends CircuitChange {
  readonly key: K;
}

export type KeyedCircuitBreakerStats = Readonly<{
  keys: number;
  /** Keys whose breaker is not closed. */
  tripped: number;
  /** Keys forgotten for want of room. */
  evicted: number;
}>;

/** Keys are told apart as those of a `Map` are. */
export class KeyedCircuitBreaker<K = string> {
  // I1  a key is in #closed or in #tripped, as its breaker is closed or not; both together hold at most #maxKeys
  // I2  each of the two is in order of last use, or of the change that brought the key there
  readonly name: string | undefined;
  readonly #options: KeyedCircuitBreakerOptions<K>;
  readonly #maxKeys: number;
  readonly #idleMs: number;
  readonly #clock: Clock;
  readonly #closed = new Map<K, Entry>();
  readonly #tripped = new Map<K, Entry>();
  #evicted = 0;

  constructor(options: KeyedCircuitBreakerOptions<K> = {}) {
    this.#maxKeys = checkInteger("maxKeys", options.maxKeys ?? 10_000, { min: 1, infinity: true });
    this.#idleMs = checkMs("idleMs", options.idleMs ?? 600_000, { min: 1, infinity: true });
    this.#clock = options.clock ?? systemClock;
    this.#options = { ...options }; // later breakers are made by what was checked now
    if (options.onStateChange !== undefined) checkFunction("onStateChange", options.onStateChange);
    this.#make(() => {}); // refuses bad options now, not at the first call
    this.name = options.name;
    register("keyed-circuit-breaker", options, this);
  }

  stats(): KeyedCircuitBreakerStats {
    const tripped = this.#tripped.size;
    return { keys: this.#closed.size + tripped, tripped, evicted: this.#evicted };
  }

  /** The key's breaker. Ask again for each call: a breaker that was forgotten and one made later know nothing of each other. */
  for(key: K): CircuitBreaker {
    const now = coarseNow(this.#clock);
    for (const entries of [this.#closed, this.#tripped]) this.#forgetIdle(entries, now);
    const entries = this.#tripped.has(key) ? this.#tripped : this.#closed;
    const entry = entries.get(key) ?? this.#enter(key);
    this.#use(entries, key, entry, now);
    return entry.breaker;
  }

  /** Calls `fn` through the key's breaker. */
  run<T>(key: K, fn: Task<T>, options: WaitOptions = {}): Promise<T> {
    try {
      return this.for(key).run(fn, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #enter(key: K): Entry {
    if (this.#closed.size + this.#tripped.size >= this.#maxKeys) this.#makeRoom();
    const breaker = this.#make((change) => this.#onStateChange(key, breaker, change));
    return { breaker, usedAt: 0 };
  }

  #make(onStateChange: (change: CircuitChange) => void): CircuitBreaker {
    return new CircuitBreaker({ ...this.#options, name: undefined, dependency: undefined, onStateChange });
  }

  #onStateChange(key: K, breaker: CircuitBreaker, change: CircuitChange): void {
    const entry = this.#closed.get(key) ?? this.#tripped.get(key);
    if (entry?.breaker !== breaker) return; // forgotten, but calls of its time were still under way
    const [to, from] = change.to === "closed" ? [this.#closed, this.#tripped] : [this.#tripped, this.#closed];
    from.delete(key);
    to.set(key, entry); // before the clock is asked, which may throw
    this.#use(to, key, entry, this.#clock.now());
    this.#options.onStateChange?.({ ...change, key });
  }

  /** Makes it the one used last. A cooldown is use, up to its end: what was open that long must not be forgotten then. */
  #use(entries: Map<K, Entry>, key: K, entry: Entry, now: number): void {
    entry.usedAt = now + entry.breaker.retryAfterMs;
    entries.delete(key);
    entries.set(key, entry);
  }

  /** Looks at the one that has not been used for longest: one with each call, so that none takes long. */
  #forgetIdle(entries: Map<K, Entry>, now: number): void {
    const [oldest] = entries;
    if (oldest === undefined) return;
    const [key, entry] = oldest;
    if (now - entry.usedAt < this.#idleMs) return;
    if (isIdle(entry)) entries.delete(key);
    else this.#use(entries, key, entry, now);
  }

  #makeRoom(): void {
    const victim =
      first(this.#closed, isIdle) ??
      first(this.#closed, isNormal) ??
      first(this.#tripped, isNormal) ??
      first(this.#tripped) ??
      first(this.#closed);
    if (victim === undefined) return;
    this.#closed.delete(victim[0]);
    this.#tripped.delete(victim[0]);
    this.#evicted += 1;
  }
}

interface Entry {
  readonly breaker: CircuitBreaker;
  /** The end of its cooldown, if that is later. */
  usedAt: number;
}

function isNormal({ breaker }: Entry): boolean {
  return breaker.mode === "normal";
}

function isIdle(entry: Entry): boolean {
  return isNormal(entry) && entry.breaker.running === 0;
}

function first<K>(
  entries: ReadonlyMap<K, Entry>,
  fits: (entry: Entry) => boolean = () => true,
): readonly [K, Entry] | undefined {
  for (const each of entries) if (fits(each[1])) return each;
  return undefined;
}
