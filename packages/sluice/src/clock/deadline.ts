/**
 * Until when an answer is still wanted. It is handed down, so that each callee has what its caller has left, and its
 * signal ends whatever goes on at that instant. To limit a single attempt, use `timeout`.
 */
import { TimeoutError } from "../errors.ts";
import { Watcher } from "../internal/abort.ts";
import { checkMs, checkSignal } from "../internal/check.ts";
import { dispose } from "../internal/dispose.ts";
import type { Clock, Timer, TimerTask } from "./clock.ts";
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
  readonly #watchers: ParentWatcher[] = [];
  #expiresAt: number;
  #controller: AbortController | undefined;
  #timer: Timer | undefined;
  #isOver = false;

  constructor(ms: number, options: DeadlineOptions) {
    checkSignal(options.signal);
    if (options.within !== undefined) checkDeadline("within", options.within);
    this.#clock = options.clock ?? systemClock;
    this.#parents = options;
    this.#timeoutMs = Math.min(checkMs("ms", ms), options.within?.leftMs ?? Infinity);
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
    for (const watcher of this.#watchers) watcher.unwatch();
  }

  [dispose](): void {
    this.close();
  }

  /** Nothing once it is over. */
  end(reason: unknown): void {
    if (this.#isOver) return;
    this.close();
    this.#controller?.abort(reason);
  }

  onTimer(): void {
    this.#expiresAt = Math.min(this.#expiresAt, this.#clock.now()); // timers may be early, but never at odds with `expired`
    queueMicrotask(() => this.end(new TimeoutError(this.#timeoutMs))); // an abort of the same turn wins
  }

  #arm(): void {
    const signals = [this.#parents.signal, this.#parents.within?.signal].filter((signal) => signal !== undefined);
    const aborted = signals.find((signal) => signal.aborted);
    if (aborted !== undefined) return this.end(aborted.reason);
    if (this.expired) return this.end(new TimeoutError(this.#timeoutMs));
    try {
      for (const signal of signals) this.#watchers.push(new ParentWatcher(this, signal));
      if (this.#timeoutMs < Infinity) this.#timer = this.#clock.setTimer(this.leftMs, this);
    } catch (error) {
      this.close(); // clock and signals are foreign code
      throw error;
    }
  }
}

class ParentWatcher extends Watcher {
  readonly #deadline: TimedDeadline;

  constructor(deadline: TimedDeadline, signal: AbortSignal) {
    super();
    this.#deadline = deadline;
    this.watch(signal);
  }

  override onAbort(reason: unknown): void {
    this.#deadline.end(reason);
  }
}
