/**
 * One policy for each key: a mutex per account, a limiter per host. A key costs something only while somebody uses it:
 * its policy is made by the first call and gone with the last, so it suits what remembers nothing between calls, such
 * as `Mutex`, `Semaphore` and `Limiter`. What does remember is keyed by itself: `RateLimiter`, `KeyedCircuitBreaker`.
 */
import { checkFunction } from "../internal/check.ts";
import { type NameOptions, register } from "../internal/names.ts";
import { whenSettled } from "../internal/when-settled.ts";
import type { Policy, Task, WaitOptions } from "../policy.ts";

export type KeyedStats = Readonly<{
  /** Keys in use. */
  keys: number;
  /** Calls that run or wait, of all keys. */
  calls: number;
}>;

export class Keyed<K> {
  // I1  a key has an entry exactly while a call for it is under way; all its calls of that time share the policy
  readonly name: string | undefined;
  readonly #make: (key: K) => Policy;
  readonly #entries = new Map<K, Entry>();
  #calls = 0;

  /** `make` is called with each key that comes into use, and must not answer with a policy that another key has. */
  constructor(make: (key: K) => Policy, options: NameOptions = {}) {
    checkFunction("make", make);
    this.#make = make;
    this.name = options.name;
    register("keyed", options, this);
  }

  /** Keys in use. */
  get size(): number {
    return this.#entries.size;
  }

  stats(): KeyedStats {
    return { keys: this.size, calls: this.#calls };
  }

  /** Whether a call for this key runs or waits. */
  has(key: K): boolean {
    return this.#entries.has(key);
  }

  /** Calls `fn` under the key's policy, with what it makes of `options`. Rejects with what `make` throws. */
  run<T>(key: K, fn: Task<T>, options?: WaitOptions): Promise<T> {
    try {
      const entry = this.#enter(key);
      const leave = (): void => this.#leave(key, entry);
      return whenSettled(
        start(entry.policy, fn, options),
        (value) => {
          leave();
          return value;
        },
        (error: unknown) => {
          leave();
          throw error;
        },
      );
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #enter(key: K): Entry {
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      const policy = this.#make(key);
      entry = this.#entries.get(key) ?? { policy, calls: 0 }; // `make` may have come back here
      this.#entries.set(key, entry);
    }
    entry.calls += 1;
    this.#calls += 1;
    return entry;
  }

  /** The entry itself is counted, not its key: whoever leaves late takes nothing from those who came anew. */
  #leave(key: K, entry: Entry): void {
    entry.calls -= 1;
    this.#calls -= 1;
    if (entry.calls === 0) this.#entries.delete(key);
  }
}

interface Entry {
  readonly policy: Policy;
  calls: number;
}

/** A policy of the user's may throw where it should reject. */
function start<T>(policy: Policy, fn: Task<T>, options: WaitOptions | undefined): Promise<T> {
  try {
    return policy.run(fn, options);
  } catch (error) {
    return Promise.reject(error);
  }
}
