/**
 * Mutual exclusion: one holder at a time, in the order they asked. Who holds it has the guard, and only the guard
 * unlocks. It keeps what is read before an `await` true after it; where nothing is awaited in between, JavaScript needs
 * none, and where several may be inside, use `Semaphore`.
 */
import { SelfWaitError } from "../errors.ts";
import { checkOneOf } from "../internal/check.ts";
import { register } from "../internal/names.ts";
import { probe } from "../internal/probe.ts";
import type { Policy, PriorityWaitOptions, RunContext, WaitOptions } from "../policy.ts";
import { GuardPool } from "./guard-pool.ts";
import { holding, holds } from "./holds.ts";
import { isGuardOf, type Permit } from "./permit.ts";
import type { LineOptions, LineStats } from "./permit-pool.ts";

export interface MutexOptions extends LineOptions {
  /**
   * What comes of asking for it under `run` of the same mutex: waiting for oneself until `timeoutMs` or for good, or a
   * `SelfWaitError` at once. Told by the async context: a function that was only handed over in there, to run after the
   * lock is free, is taken for one that waits, and a runtime without async context (a browser) knows of none.
   * @default "wait"
   */
  readonly reentry?: "wait" | "throw" | undefined;
}

export type MutexStats = LineStats & Readonly<{ locked: boolean }>;

export interface MutexContext extends RunContext {
  /** Of the lock that the function runs under: for `Condition`. */
  readonly guard: Permit;
}

/** The inside of a mutex, for `Condition`. */
export let poolOf: (mutex: Mutex) => GuardPool;

export class Mutex implements Policy {
  readonly name: string | undefined;
  readonly #pool: GuardPool;
  readonly #throwsOnReentry: boolean;

  static {
    poolOf = (mutex) => mutex.#pool;
  }

  constructor(options: MutexOptions = {}) {
    this.#throwsOnReentry = checkOneOf("reentry", options.reentry ?? "wait", ["wait", "throw"]) === "throw";
    this.#pool = new GuardPool("mutex", this, 1, options);
    this.name = options.name;
    register("mutex", options, this);
  }

  get locked(): boolean {
    return this.#pool.free === 0;
  }

  get waiting(): number {
    return this.#pool.waiting;
  }

  get closed(): boolean {
    return this.#pool.closed;
  }

  stats(): MutexStats {
    return { locked: this.locked, ...this.#pool.stats() };
  }

  /** Calls `fn` while holding the lock: at once if it is free, else after the grant. */
  async run<T>(fn: (context: MutexContext) => T | PromiseLike<T>, options: PriorityWaitOptions = {}): Promise<T> {
    const { signal } = options;
    const guard = this.#admits(options) ? this.#pool.lend() : await this.#pool.wait(options);
    try {
      signal?.throwIfAborted(); // the abort may have come between the grant and this turn
      const call = (): T | PromiseLike<T> => fn({ signal, guard });
      const enter = this.#throwsOnReentry ? () => holding(this, guard, call) : call;
      return await (probe === undefined ? enter() : probe.within(guard, enter));
    } finally {
      guard.release();
    }
  }

  /** The lock's guard as soon as it is free. Once granted it is yours, even if `signal` aborts in the same turn. */
  acquire(options?: PriorityWaitOptions): Promise<Permit> {
    try {
      return this.#admits(options) ? Promise.resolve(this.#pool.lend()) : this.#pool.wait(options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** The guard now, or undefined. */
  tryAcquire(): Permit | undefined {
    return this.#pool.tryTake() ? this.#pool.lend() : undefined;
  }

  /** Whether it is locked by this guard. */
  isHeldBy(guard: Permit): boolean {
    return isGuardOf(this.#pool, guard);
  }

  /** Resolves as soon as it is unlocked and nobody waits. It turns nobody away: `close` first, or newcomers can put it off. */
  drain(options: WaitOptions = {}): Promise<void> {
    return this.#pool.drain(options);
  }

  /** Waiters and newcomers get `ClosedError`; the guard may still unlock. */
  close(): void {
    this.#pool.close();
  }

  #admits(options: PriorityWaitOptions | undefined): boolean {
    if (this.#pool.admits(options)) return true;
    if (this.#throwsOnReentry && holds(this)) throw new SelfWaitError("mutex");
    return false;
  }
}
