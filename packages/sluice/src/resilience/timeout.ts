/**
 * Limits how long a call may take. At the limit the caller has its answer, a `TimeoutError`, and the work its signal;
 * work that ignores its signal goes on by itself, abandoned, and `stats()` counts it. For a limit over several calls,
 * use `Deadline`; for one on a wait, its `timeoutMs`.
 */
import type { Clock, Timer, TimerTask } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { TimeoutError } from "../errors.ts";
import { Watcher } from "../internal/abort.ts";
import { checkMs, checkWait } from "../internal/check.ts";
import { type NameOptions, register } from "../internal/names.ts";
import { whenSettled } from "../internal/when-settled.ts";
import type { Policy, RunContext, WaitOptions } from "../policy.ts";

export interface TimeoutOptions extends NameOptions {
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

export interface TimeoutContext extends RunContext {
  /** Aborts with the `TimeoutError` at the limit, and with the caller's reason at the caller's abort. */
  readonly signal: AbortSignal;
}

export type TimeoutStats = Readonly<{
  /** Work that has not ended. */
  running: number;
  /** Of this, the work whose caller has its answer already. */
  abandoned: number;
  /** Calls that reached the limit. */
  timedOut: number;
  /** Errors of abandoned work, other than the reason it was ended with. Nobody else hears of them. */
  lateErrors: number;
}>;

/** A policy that limits each call to `timeoutMs`, at least 1; `Infinity` for none. */
export function timeout(timeoutMs: number, options: TimeoutOptions = {}): Timeout {
  return new Timeout(timeoutMs, options);
}

export class Timeout implements Policy {
  readonly timeoutMs: number;
  readonly name: string | undefined;
  readonly #clock: Clock;
  readonly #counts: Counts = { running: 0, abandoned: 0, timedOut: 0, lateErrors: 0 };

  constructor(timeoutMs: number, options: TimeoutOptions = {}) {
    this.timeoutMs = checkMs("timeoutMs", timeoutMs, { min: 1, infinity: true });
    this.#clock = options.clock ?? systemClock;
    this.name = options.name;
    register("timeout", options, this);
  }

  stats(): TimeoutStats {
    return { ...this.#counts };
  }

  /** Calls `fn` at once. An abort by the caller is the caller's answer, at once and unchanged. */
  run<T>(fn: (context: TimeoutContext) => T | PromiseLike<T>, options: WaitOptions = {}): Promise<T> {
    return new Promise((resolve, reject) => {
      checkWait(options);
      const call = new Call<T>(this.timeoutMs, this.#counts, resolve, reject);
      call.arm(this.#clock, options.signal);
      call.start(fn);
    });
  }
}

type Counts = { -readonly [K in keyof TimeoutStats]: TimeoutStats[K] };

class Call<T> extends Watcher implements TimerTask {
  // I1  there are a timer and a watcher until the caller has its answer, which it has once
  // I2  the work's signal aborts exactly if the caller has its answer before the work has ended
  readonly #timeoutMs: number;
  readonly #counts: Counts;
  readonly #resolve: (value: T) => void;
  readonly #reject: (reason: unknown) => void;
  #timer: Timer | undefined;
  #controller: AbortController | undefined;
  #answer: { readonly reason: unknown } | undefined;
  #isDone = false;

  constructor(timeoutMs: number, counts: Counts, resolve: (value: T) => void, reject: (reason: unknown) => void) {
    super();
    this.#timeoutMs = timeoutMs;
    this.#counts = counts;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /** Made when the work first asks for it: for every call, it would be most of what a call costs. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#answer !== undefined) this.#controller.abort(this.#answer.reason);
    }
    return this.#controller.signal;
  }

  arm(clock: Clock, signal: AbortSignal | undefined): void {
    try {
      if (this.#timeoutMs < Infinity) this.#timer = clock.setTimer(this.#timeoutMs, this);
      if (signal !== undefined) this.watch(signal);
    } catch (error) {
      this.#disarm(); // clock and signal are foreign code
      throw error;
    }
  }

  start(fn: (context: TimeoutContext) => T | PromiseLike<T>): void {
    this.#counts.running += 1;
    try {
      void whenSettled(
        fn(new Context(this)),
        (value) => this.#succeed(value),
        (error) => this.#fail(error),
      );
    } catch (error) {
      this.#fail(error);
    }
  }

  onTimer(): void {
    queueMicrotask(() => {
      if (this.#isDone || this.#answer !== undefined) return; // an abort of the same turn wins
      this.#counts.timedOut += 1;
      this.#abandon(new TimeoutError(this.#timeoutMs));
    });
  }

  override onAbort(reason: unknown): void {
    this.#abandon(reason);
  }

  #abandon(reason: unknown): void {
    this.#answer = { reason };
    this.#counts.abandoned += 1;
    this.#disarm();
    this.#reject(reason);
    this.#controller?.abort(reason);
  }

  #succeed(value: T): void {
    if (this.#isEarly()) this.#resolve(value);
  }

  #fail(error: unknown): void {
    if (this.#isEarly()) this.#reject(error);
    else if (error !== this.#answer?.reason) this.#counts.lateErrors += 1;
  }

  /** The work has ended: whether before the caller had another answer. */
  #isEarly(): boolean {
    this.#isDone = true;
    this.#counts.running -= 1;
    if (this.#answer === undefined) this.#disarm();
    else this.#counts.abandoned -= 1;
    return this.#answer === undefined;
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.unwatch();
  }
}

/** Keeps the rest of a call from its work. */
class Context implements TimeoutContext {
  readonly #call: TimeoutContext;

  constructor(call: TimeoutContext) {
    this.#call = call;
  }

  get signal(): AbortSignal {
    return this.#call.signal;
  }
}
