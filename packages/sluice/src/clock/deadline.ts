/**
 * Until when an answer is still wanted. It is handed down, so that each callee has what its caller has left, and its
 * signal ends whatever goes on at that instant. To limit a single attempt, use `timeout`.
 */
import { TimeoutError } from "../errors.ts";
import { checkMs, checkSignal } from "../internal/check.ts";
import { dispose } from "../internal/dispose.ts";
import type { Clock, Timer, TimerTask } from "./clock.ts";
import { Relay } from "./relay.ts";
import { systemClock } from "./system.ts";

export interface Deadline extends Disposable {
  /** What is left, never below 0: the limit to hand to whatever is called next. */
  readonly leftMs: number;
  readonly expired: boolean;
  /** Aborts with `TimeoutError` at the deadline, or with the reason of a parent if that comes first. */
  readonly signal: AbortSignal;
  /** Leaves no timer and no listener; the signal won't abort any more. Idempotent, as is disposal. */
  close(): void;
}

export interface DeadlineOptions {
  /** Whose abort ends it early. */
  readonly signal?: AbortSignal | undefined;
  /** It ends no later than this one, and with it. */
  readonly within?: Deadline | undefined;
  /** It ends so long before `within`, for the way back. At least 0, and finite. @default 0 */
  readonly reserveMs?: number | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

export const Deadline: {
  /** A deadline `ms` from now, at least 0; `Infinity` for none but those of its parents. */
  after(ms: number, options?: DeadlineOptions): Deadline;
} = {
  after: (ms, options = {}) => new TimedDeadline(ms, options),
};

/** Not `instanceof`, since it may come from another copy of the package; and `signal` isn't read, which would arm it. */
export function checkDeadline(name: string, value: Deadline): Deadline {
  if (typeof value?.leftMs === "number" && "signal" in value) return value;
  throw new TypeError(`${name} must be a Deadline, got ${value === null ? "null" : typeof value}`);
}

class TimedDeadline implements Deadline, TimerTask {
  // I1  from the first use of `signal` to its abort or `close` there are a timer and a watcher on each parent; else none
  readonly #clock: Clock;
  readonly #timeoutMs: number;
  readonly #parents: Pick<DeadlineOptions, "signal" | "within">;
  readonly #relays: Relay[] = [];
  #expiresAt: number;
  #controller: AbortController | undefined;
  #timer: Timer | undefined;
  #isOver = false;

  constructor(ms: number, options: DeadlineOptions) {
    checkSignal(options.signal);
    if (options.within !== undefined) checkDeadline("within", options.within);
    this.#clock = options.clock ?? systemClock;
    this.#parents = options;
    const reserveMs = checkMs("reserveMs", options.reserveMs ?? 0, { min: 0 });
    this.#timeoutMs = Math.min(checkMs("ms", ms), Math.max(0, (options.within?.leftMs ?? Infinity) - reserveMs));
    this.#expiresAt = this.#clock.now() + this.#timeoutMs;
  }

  get leftMs(): number {
    return Math.max(0, this.#expiresAt - this.#clock.now());
  }

  get expired(): boolean {
    return this.leftMs === 0;
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (!this.#isOver) this.#arm();
    }
    return this.#controller.signal;
  }

  close(): void {
    this.#isOver = true;
    this.#timer?.cancel();
    for (const relay of this.#relays) relay.unwatch();
  }

  [dispose](): void {
    this.close();
  }

  /** Of a parent, or its own. Nothing once it is over. */
  onAbort(reason: unknown): void {
    if (this.#isOver) return;
    this.close();
    this.#controller?.abort(reason);
  }

  onTimer(): void {
    this.#expiresAt = Math.min(this.#expiresAt, this.#clock.now()); // timers may be early, but never at odds with `expired`
    queueMicrotask(() => this.onAbort(new TimeoutError(this.#timeoutMs))); // an abort of the same turn wins
  }

  #arm(): void {
    const signals = [this.#parents.signal, this.#parents.within?.signal].filter((signal) => signal !== undefined);
    const aborted = signals.find((signal) => signal.aborted);
    if (aborted !== undefined) return this.onAbort(aborted.reason);
    if (this.expired) return this.onAbort(new TimeoutError(this.#timeoutMs));
    try {
      for (const signal of signals) this.#relays.push(new Relay(this, signal));
      if (this.#timeoutMs < Infinity) this.#timer = this.#clock.setTimer(this.leftMs, this);
    } catch (error) {
      this.close(); // clock and signals are foreign code
      this.#isOver = false; // who asks again must not get a signal that never aborts
      this.#controller = undefined;
      throw error;
    }
  }
}
