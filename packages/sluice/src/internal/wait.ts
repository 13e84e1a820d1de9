/**
 * A promise that is its own place in line. With one object for both, and one settling function where a promise usually
 * keeps two, a wait takes 240 B instead of 350; long lines are as fast as the garbage collector can copy them.
 */
import type { Clock, Timer, TimerTask } from "../clock/clock.ts";
import { TimeoutError } from "../errors.ts";
import { watch, type Watchers, type Watching } from "./abort.ts";
import type { Lane } from "./lane.ts";
import { notice } from "./probe.ts";

/** `T` is what a wait is granted, `B` what the waiter brought along. */
export class Wait<T, B = void> extends Promise<T> implements Watching {
  // Only `Lane` writes these.
  ahead: Wait<T, B> | undefined = undefined;
  behind: Wait<T, B> | undefined = undefined;
  /** Where it stands; undefined once it has left. */
  lane: Lane<T, B> | undefined = undefined;
  watchers: Watchers | undefined = undefined;
  older: Watching | undefined = undefined;
  newer: Watching | undefined = undefined;
  /** In whole milliseconds of the clock: a fraction would take 16 B more in each wait. */
  readonly joinedAt: number;
  readonly brought: B;
  readonly #settle: (value: T | PromiseLike<T>) => void;

  constructor(joinedAt: number, brought: B) {
    super(keepSettle);
    this.#settle = kept as (value: T | PromiseLike<T>) => void;
    kept = model; // or the last wait of all would never be collected, nor its line
    this.joinedAt = Math.floor(joinedAt);
    this.brought = brought;
  }

  /** Its signal has aborted, and it is about to hear of it: it must be granted nothing any more. */
  get isDoomed(): boolean {
    return this.watchers?.signal.aborted === true;
  }

  /** For whoever has taken it out of the line. */
  grant(value: T | PromiseLike<T>): void {
    this.#settle(value);
  }

  /** Does nothing to a wait that has left. */
  reject(reason: unknown): void {
    const list = this.lane?.list;
    if (list === undefined) return;
    list.remove(this);
    const instead = list.onLeave?.(this.brought, reason);
    this.#settle(instead ?? Promise.reject(reason)); // by the one function there is: two turns later than by a second one
  }

  onAbort(reason: unknown): void {
    const list = this.lane?.list;
    if (list === undefined) return;
    list.aborted += 1;
    this.reject(reason);
    if (list.owner !== undefined) notice?.("aborted", list.owner);
  }

  arm(signal: AbortSignal | undefined, _clock: Clock): void {
    if (signal !== undefined) watch(this, signal);
  }

  /** As of any promise: its neighbours are nobody's business, and lead back to it. */
  toJSON(): object {
    return {};
  }

  /** Called whenever it leaves the line, granted or not. */
  disarm(): void {
    this.watchers?.leave(this);
  }
}

asPlainPromise(Wait);

/**
 * Lets `then` and `await` take it for a plain promise, and neither make nor wait for another one. For each class of
 * waits, since each has a `constructor` of its own.
 */
export function asPlainPromise(waits: { readonly prototype: { constructor: unknown } }): void {
  waits.prototype.constructor = Promise;
}

let kept: unknown;

function keepSettle(resolve: unknown): void {
  kept = resolve;
}

/**
 * One wait is always there. A full garbage collection forgets the layout of instances of which none is left, and with
 * it the code that was optimized for them: after it, each line would begin slowly, by half.
 */
let model: unknown = undefined;
model = new Wait(0, undefined);

export class TimedWait<T, B> extends Wait<T, B> implements TimerTask {
  readonly #timeoutMs: number;
  #timer: Timer | undefined;

  constructor(joinedAt: number, brought: B, timeoutMs: number) {
    super(joinedAt, brought);
    this.#timeoutMs = timeoutMs;
  }

  override arm(signal: AbortSignal | undefined, clock: Clock): void {
    this.#timer = clock.setTimer(this.#timeoutMs, this);
    super.arm(signal, clock);
  }

  override disarm(): void {
    super.disarm();
    this.#timer?.cancel();
  }

  onTimer(): void {
    queueMicrotask(() => this.#expire()); // one microtask later: a grant or an abort of the same turn wins
  }

  #expire(): void {
    const list = this.lane?.list;
    if (list === undefined) return;
    list.timedOut += 1;
    this.reject(new TimeoutError(this.#timeoutMs));
    if (list.owner !== undefined) notice?.("timed-out", list.owner);
  }
}

asPlainPromise(TimedWait);
