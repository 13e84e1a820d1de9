/**
 * A circuit breaker for each provider, origin or tenant, made when its key is first used. Bounded, since keys often come
 * from outside: a flood of them must neither fill the memory nor make open breakers forget.
 */
import { checkInteger } from "../internal/check.ts";
import { register } from "../internal/names.ts";
import type { Task, WaitOptions } from "../policy.ts";
import { type CircuitChange, CircuitBreaker, type CircuitBreakerOptions } from "./circuit-breaker.ts";

export interface KeyedCircuitBreakerOptions extends Omit<CircuitBreakerOptions, "onStateChange"> {
  /**
   * Keys remembered. When there is no room, the closed breaker goes that has not been used for longest, one without
   * calls under way before any other. Open ones stay unless all are open: then the one goes that opened first.
   * An integer >= 1, or `Infinity`. @default 10_000
   */
  readonly maxKeys?: number | undefined;
  /** As a breaker's own. */
  readonly onStateChange?: ((change: KeyedCircuitChange) => void) | undefined;
}

export interface KeyedCircuitChange extends CircuitChange {
  readonly key: string;
}

export type KeyedCircuitBreakerStats = Readonly<{
  keys: number;
  /** Keys whose breaker is not closed. */
  tripped: number;
  /** Keys forgotten for want of room. */
  evicted: number;
}>;

export class KeyedCircuitBreaker {
  // I1  a key is in #closed or in #tripped, as its breaker is closed or not; both together hold at most #maxKeys
  // I2  #closed is in order of last use, #tripped in order of opening
  readonly name: string | undefined;
  readonly #options: KeyedCircuitBreakerOptions;
  readonly #maxKeys: number;
  readonly #closed = new Map<string, CircuitBreaker>();
  readonly #tripped = new Map<string, CircuitBreaker>();
  #evicted = 0;

  constructor(options: KeyedCircuitBreakerOptions = {}) {
    this.#maxKeys = checkInteger("maxKeys", options.maxKeys ?? 10_000, { min: 1, infinity: true });
    this.#options = { ...options }; // later breakers are made by what was checked now
    this.#make(""); // refuses bad options now, not at the first call
    this.name = options.name;
    register("keyed-circuit-breaker", options, this);
  }

  stats(): KeyedCircuitBreakerStats {
    const tripped = this.#tripped.size;
    return { keys: this.#closed.size + tripped, tripped, evicted: this.#evicted };
  }

  /** The key's breaker. Ask again for each call: a breaker that was forgotten and one made later know nothing of each other. */
  for(key: string): CircuitBreaker {
    const tripped = this.#tripped.get(key);
    if (tripped !== undefined) return tripped;
    if (typeof key !== "string") throw new TypeError(`key must be a string, got ${typeof key}`);
    const known = this.#closed.get(key);
    if (known === undefined && this.#closed.size + this.#tripped.size >= this.#maxKeys) this.#makeRoom();
    const breaker = known ?? this.#make(key);
    this.#closed.delete(key);
    this.#closed.set(key, breaker); // now the one used last
    return breaker;
  }

  /** Calls `fn` through the key's breaker. */
  run<T>(key: string, fn: Task<T>, options: WaitOptions = {}): Promise<T> {
    try {
      return this.for(key).run(fn, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #make(key: string): CircuitBreaker {
    const onStateChange = (change: CircuitChange): void => this.#onStateChange(key, breaker, change);
    const breaker = new CircuitBreaker({ ...this.#options, name: undefined, onStateChange });
    return breaker;
  }

  #onStateChange(key: string, breaker: CircuitBreaker, change: CircuitChange): void {
    const known = this.#closed.get(key) ?? this.#tripped.get(key);
    if (known !== breaker) return; // forgotten, but calls of its time were still under way
    if (change.to !== "half-open") {
      this.#closed.delete(key);
      this.#tripped.delete(key);
      (change.to === "closed" ? this.#closed : this.#tripped).set(key, breaker);
    }
    this.#options.onStateChange?.({ ...change, key });
  }

  #makeRoom(): void {
    let [victim] = this.#closed.keys();
    for (const [key, { running }] of this.#closed) {
      if (running > 0) continue;
      victim = key;
      break;
    }
    victim ??= this.#tripped.keys().next().value;
    if (victim === undefined) return;
    this.#closed.delete(victim);
    this.#tripped.delete(victim);
    this.#evicted += 1;
  }
}
