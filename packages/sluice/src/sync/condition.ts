/**
 * Condition variable: who holds a mutex lets go of it until something about what it guards has changed. One for each
 * thing to wait for, as many to a mutex as needed: with one for two, a signal wakes the wrong side. A signal that
 * nobody waits for is gone: what is true already needs no waiting for. As Java's Condition, but for `waitFor`.
 */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { NotHeldError, TimeoutError } from "../errors.ts";
import { checkWait } from "../internal/check.ts";
import { type NameOptions, register } from "../internal/names.ts";
import type { Wait } from "../internal/wait.ts";
import { probe } from "../internal/probe.ts";
import { WaitList } from "../internal/wait-list.ts";
import type { WaitOptions } from "../policy.ts";
import { type Mutex, poolOf } from "./mutex.ts";
import { type Permit, renewGuard } from "./permit.ts";

export interface ConditionOptions extends NameOptions {
  /** Runs `timeoutMs` and tells ages. @default systemClock */
  readonly clock?: Clock | undefined;
}

export type ConditionStats = Readonly<{
  /** Those who wait to be woken; who has been woken and waits for the mutex counts there. */
  waiting: number;
  /** Age of the longest wait that goes on; 0 if nobody waits. */
  oldestWaitMs: number;
  /** Waiters woken so far. */
  woken: number;
  /** Signals and broadcasts that woke nobody. */
  unheard: number;
  timedOut: number;
  aborted: number;
}>;

/** What a waiter left behind. */
interface Waiting {
  readonly guard: Permit;
  readonly predicate: (() => boolean) | undefined;
  /** Woken by a signal, which the next may need if this one cannot use it. */
  signalled: boolean;
}

export class Condition {
  // I1  a wait is in the line until it is woken, aborts, times out or its predicate throws; from then on, and in the
  //     same turn, it stands in the line of the mutex, and its promise settles when its guard holds again
  // I2  a signal wakes one, whose promise resolves; one that finds its predicate false again signals the next
  readonly mutex: Mutex;
  readonly name: string | undefined;
  readonly #clock: Clock;
  readonly #waiters: WaitList<void, Waiting>;
  #woken = 0;
  #unheard = 0;

  constructor(mutex: Mutex, options: ConditionOptions = {}) {
    if (typeof mutex?.isHeldBy !== "function") throw new TypeError(`mutex must be a Mutex, got ${typeof mutex}`);
    this.mutex = mutex;
    this.#clock = options.clock ?? systemClock;
    this.#waiters = new WaitList<void, Waiting>({
      owner: this,
      onLeave: (waiting, reason) => {
        const fail = (): Promise<never> => Promise.reject(reason);
        return this.#comeBack(waiting).then(fail, fail);
      },
    });
    this.name = options.name;
    register("condition", options, this);
  }

  get waiting(): number {
    return this.#waiters.size;
  }

  stats(): ConditionStats {
    const { timedOut, aborted } = this.#waiters;
    const oldestWaitMs = this.#waiters.oldestWaitMs(this.#clock);
    return { waiting: this.waiting, oldestWaitMs, woken: this.#woken, unheard: this.#unheard, timedOut, aborted };
  }

  /**
   * Lets go of the mutex until it is woken, and has it again when the promise settles, also when it rejects: `signal`
   * and `timeoutMs` end the wait to be woken, and nothing ends the wait for the mutex after that, since whoever holds
   * the guard would believe it held. Who has been woken is no longer aborted. With `timeoutMs` 0 it doesn't let go.
   * What it waited for may be over by then: test it in a loop, or use `waitFor`, which does.
   * Rejects with `NotHeldError` if the mutex is not locked by `guard`, or if `guard` was released while it waited, as
   * where a `Promise.race` has gone on without it: then the mutex is not locked again.
   */
  wait(guard: Permit, options: WaitOptions = {}): Promise<void> {
    try {
      return this.#wait(this.#check(guard, undefined), options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * As `wait`, until `predicate` holds: at once if it does, and it does when the promise resolves. It is called by who
   * signals, so that nobody is woken in vain, and again with the mutex held. If it throws, that rejects this wait alone.
   */
  async waitFor(guard: Permit, predicate: () => boolean, options: WaitOptions = {}): Promise<void> {
    const { signal, timeoutMs = Infinity } = options;
    checkWait(options);
    const waiting = this.#check(guard, predicate);
    const until = timeoutMs === Infinity ? Infinity : this.#clock.now() + timeoutMs;
    let leftMs = timeoutMs;
    while (!this.#holds(waiting, predicate)) {
      try {
        await this.#wait(waiting, { signal, timeoutMs: leftMs });
      } catch (error) {
        throw error instanceof TimeoutError && error.timeoutMs === leftMs ? new TimeoutError(timeoutMs) : error;
      }
      if (until !== Infinity) leftMs = Math.max(0, until - this.#clock.now());
    }
  }

  /**
   * Wakes who has waited longest, of those in `waitFor` only one whose predicate holds. It need not be called with the
   * mutex held, but then what the predicates read may be half done.
   */
  signal(): void {
    let wait = this.#waiters.first;
    while (wait !== undefined && !isReady(wait)) {
      // A predicate is foreign code, and may have ended any wait, this one too: then there is no way on from here.
      wait = wait.lane === undefined ? this.#waiters.first : wait.behind;
    }
    if (wait === undefined) this.#unheard += 1;
    else this.#wake(wait, true);
  }

  /** Wakes all who wait now, of those in `waitFor` only those whose predicate holds. They get the mutex one by one. */
  broadcast(): void {
    const before = this.#woken;
    for (const wait of this.#waiters.live()) if (isReady(wait)) this.#wake(wait, false);
    if (this.#woken === before) this.#unheard += 1;
  }

  #check(guard: Permit, predicate: (() => boolean) | undefined): Waiting {
    if (!this.mutex.isHeldBy(guard)) throw new NotHeldError("mutex");
    return { guard, predicate, signalled: false };
  }

  #wait(waiting: Waiting, options: WaitOptions): Promise<void> {
    checkWait(options);
    if (!waiting.guard.isHeld) throw new NotHeldError("mutex"); // its predicate may have released it
    this.#waiters.refuseHaste(options);
    const wait = this.#waiters.wait(options, this.#clock, waiting);
    waiting.signalled = false;
    waiting.guard.release(); // only now: what throws before has let go of nothing
    return wait;
  }

  #wake(wait: Wait<void, Waiting>, signalled: boolean): void {
    this.#woken += 1;
    this.#waiters.remove(wait);
    wait.brought.signalled = signalled;
    wait.grant(this.#comeBack(wait.brought));
  }

  /** Resolves when the mutex is locked by the same guard again, unless that was released meanwhile. */
  #comeBack(waiting: Waiting): Promise<void> {
    const { guard } = waiting;
    const pool = poolOf(this.mutex);
    // It is not who wakes it that waits for the mutex.
    const reclaimed = probe === undefined ? pool.reclaim() : probe.as(guard, () => pool.reclaim());
    return reclaimed.then((fresh) => {
      if (renewGuard(guard, fresh)) return;
      if (waiting.signalled) this.signal(); // somebody else may have use for it
      throw new NotHeldError("mutex");
    });
  }

  #holds(waiting: Waiting, predicate: () => boolean): boolean {
    let holds = false;
    try {
      holds = test(predicate);
    } finally {
      if (!holds && waiting.signalled) this.signal(); // somebody else may have use for it
    }
    return holds;
  }
}

/** Not if it has left, or leaves while it is asked: its predicate may throw or abort it, and another's as well. */
function isReady(wait: Wait<void, Waiting>): boolean {
  const { predicate } = wait.brought;
  if (wait.lane === undefined || wait.isDoomed) return false;
  try {
    return (predicate === undefined || test(predicate)) && wait.lane !== undefined;
  } catch (error) {
    wait.reject(error);
    return false;
  }
}

/** A promise would always hold. */
function test(predicate: () => boolean): boolean {
  const result = predicate();
  if (typeof result !== "boolean") throw new TypeError(`predicate must return a boolean, got ${typeof result}`);
  return result;
}
