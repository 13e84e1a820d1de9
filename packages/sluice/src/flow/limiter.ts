/**
 * Runs at most `concurrency` functions at a time, the others in the order they were handed in. With a `capacity` it is
 * a bulkhead: a dependency that has become slow fills its own line and nobody else's.
 */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { ClosedError, QueueFullError } from "../errors.ts";
import { checkInteger, checkOneOf, checkWait } from "../internal/check.ts";
import { EitherSignal } from "../internal/either-signal.ts";
import { type NameOptions, register } from "../internal/names.ts";
import { WaitList } from "../internal/wait-list.ts";
import { whenSettled } from "../internal/when-settled.ts";
import type { Policy, Task, WaitOptions } from "../policy.ts";

export interface LimiterOptions extends NameOptions {
  /** Calls accepted beyond those that run. An integer >= 0; 0 accepts only what can run at once. @default Infinity */
  readonly capacity?: number | undefined;
  /**
   * What a call gets when even the line is full: `QueueFullError`, or it waits to be accepted, which bounds nothing but
   * holds back a caller who awaits each call. @default "reject"
   */
  readonly whenFull?: "reject" | "wait" | undefined;
  /** Runs `timeoutMs` and tells ages. @default systemClock */
  readonly clock?: Clock | undefined;
}

export type LimiterStats = Readonly<{
  concurrency: number;
  capacity: number;
  /** Slots that are taken. */
  running: number;
  waiting: number;
  /** Age of the longest wait that goes on; 0 if nobody waits. */
  oldestWaitMs: number;
  /** Calls that had a slot and gave it back, whatever came of them. */
  completed: number;
  /** Calls turned away because the limiter was full or closed, those that waited when it closed included. */
  rejected: number;
  /** Calls that got no slot, because of their `timeoutMs` or because their signal aborted while they waited. */
  timedOut: number;
  aborted: number;
  closed: boolean;
}>;

export class Limiter implements Policy {
  // I1  0 <= #running <= concurrency; a slot is taken from the grant until what `fn` returned has settled
  // I2  somebody waits only while all slots are taken
  // I3  slots go out in the order of the calls; no newcomer overtakes
  // I4  of those in line, the first `capacity` are accepted; once closed there are no others
  // I5  each call counts once: among those that run, wait, are completed, rejected, timed out or aborted
  readonly concurrency: number;
  readonly capacity: number;
  readonly name: string | undefined;
  readonly #whenFull: "reject" | "wait";
  readonly #clock: Clock;
  readonly #line = new WaitList<Task<unknown>, Task<unknown>>();
  readonly #drains = new WaitList<void>();
  readonly #stop = new AbortController();
  #running = 0;
  #completed = 0;
  #rejected = 0;
  #closed = false;

  /** At most `concurrency` calls at a time: an integer >= 1, or `Infinity`. */
  constructor(concurrency: number, options: LimiterOptions = {}) {
    this.concurrency = checkInteger("concurrency", concurrency, { min: 1, infinity: true });
    this.capacity = checkInteger("capacity", options.capacity ?? Infinity, { min: 0, infinity: true });
    this.#whenFull = checkOneOf("whenFull", options.whenFull ?? "reject", ["reject", "wait"]);
    this.#clock = options.clock ?? systemClock;
    this.name = options.name;
    register("limiter", options, this);
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#line.size;
  }

  get closed(): boolean {
    return this.#closed;
  }

  stats(): LimiterStats {
    return {
      concurrency: this.concurrency,
      capacity: this.capacity,
      running: this.#running,
      waiting: this.waiting,
      oldestWaitMs: this.#line.oldestWaitMs(this.#clock),
      completed: this.#completed,
      rejected: this.#rejected,
      timedOut: this.#line.timedOut,
      aborted: this.#line.aborted,
      closed: this.#closed,
    };
  }

  /**
   * Calls `fn` in a slot: at once if one is free, else when its turn comes. The slot is kept until what `fn` returned
   * has settled, also if the caller has long stopped waiting for it: a call that outlives its deadline is still a load
   * on what is protected. `fn`'s signal aborts with the caller's and with `abort`; where the caller gave none it
   * outlives the call, so take back the listeners you add. Functions that wait for nothing run one after the other, as
   * promise reactions do, with no timer between them.
   */
  run<T>(fn: Task<T>, options: WaitOptions = {}): Promise<T> {
    try {
      checkWait(options);
      const { signal } = options;
      if (this.#closed) throw this.#refuse(new ClosedError("limiter"));
      if (this.#running < this.concurrency) {
        this.#running += 1; // overtakes nobody (I2)
        return (signal === undefined ? this.#start(fn) : this.#startWithin(signal, fn)) as Promise<T>;
      }
      this.#line.refuseHaste(options);
      if (this.#whenFull === "reject" && this.waiting >= this.capacity) {
        throw this.#refuse(new QueueFullError(this.capacity));
      }
      // A reaction made here runs in the async context of whoever calls, and keeps less than a suspended function would.
      const start = signal === undefined ? this.#start : (task: Task<unknown>) => this.#startWithin(signal, task);
      return this.#line.wait(options, this.#clock, fn).then(start) as Promise<T>;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Resolves as soon as nothing runs or waits. It turns nobody away: `close` first, or newcomers can put it off. */
  drain(options: WaitOptions = {}): Promise<void> {
    try {
      checkWait(options);
      if (this.#running === 0) return Promise.resolve();
      this.#drains.refuseHaste(options);
      return this.#drains.wait(options, this.#clock);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Newcomers, and callers that wait to be accepted, get `ClosedError`; what was accepted runs. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#rejected += Math.max(0, this.waiting - this.capacity);
    if (this.waiting > this.capacity) this.#line.rejectAll(new ClosedError("limiter"), this.capacity);
  }

  /**
   * Closes, and ends what was accepted: who waits is rejected with `reason`, and the signals of those that run abort
   * with it; their slots stay taken until they have ended. @param reason as for `AbortController.abort`
   */
  abort(reason?: unknown): void {
    this.#closed = true;
    this.#stop.abort(reason);
    this.#rejected += this.waiting;
    this.#line.rejectAll(this.#stop.signal.reason);
  }

  // The slot is taken already. One function for all that bring no signal: a closure takes 112 B in each call that waits.
  readonly #start = (fn: Task<unknown>): Promise<unknown> => {
    const { signal } = this.#stop;
    try {
      signal.throwIfAborted(); // the abort may have come between the grant and this turn
      return whenSettled(fn({ signal }), this.#succeed, this.#fail);
    } catch (error) {
      this.#giveBack();
      return Promise.reject(error);
    }
  };

  async #startWithin(call: AbortSignal, fn: Task<unknown>): Promise<unknown> {
    let either: EitherSignal | undefined;
    try {
      call.throwIfAborted(); // as above
      this.#stop.signal.throwIfAborted();
      either = new EitherSignal(call, this.#stop.signal);
      return await fn({ signal: either.signal });
    } finally {
      this.#giveBack();
      either?.release();
    }
  }

  readonly #succeed = (value: unknown): unknown => {
    this.#giveBack();
    return value;
  };

  readonly #fail = (reason: unknown): never => {
    this.#giveBack();
    throw reason;
  };

  #giveBack(): void {
    this.#completed += 1;
    const next = this.#line.shift();
    if (next === undefined) this.#running -= 1;
    else next.grant(next.brought); // handed over, never through #running: nobody can slip in (I3)
    if (this.#running > 0) return;
    for (let wait = this.#drains.shift(); wait !== undefined; wait = this.#drains.shift()) wait.grant();
  }

  #refuse(error: Error): Error {
    this.#rejected += 1;
    return error;
  }
}

/** A `Limiter` as one function. */
export interface Limit {
  <T>(fn: Task<T>, options?: WaitOptions): Promise<T>;
  readonly limiter: Limiter;
}

/** `const limit = limiter(8); await limit(() => fetch(url))` */
export function limiter(concurrency: number, options?: LimiterOptions): Limit {
  const own = new Limiter(concurrency, options);
  const limit = <T>(fn: Task<T>, wait?: WaitOptions): Promise<T> => own.run(fn, wait);
  return Object.assign(limit, { limiter: own });
}
