/**
 * Limits how long a call may take. At the limit the work's signal aborts, and its caller has an answer, a
 * `TimeoutError`: at once, in which case work that ignores its signal goes on by itself, abandoned, and `stats()` counts
 * it; or, cooperatively, when the work has ended. For a limit over several calls, use `Deadline`; for one on a wait, its
 * `timeoutMs`.
 *
 * What holds a slot: around a `Limiter` or `Semaphore` either kind leaves the slot taken until the work has ended, and
 * counts the wait for it; inside one, only the cooperative kind does, and counts the work alone. A `Limiter` has its own
 * `maxRunMs` for both at a time.
 */
import type { Clock } from "../clock/clock.ts";
import { Relay } from "../clock/relay.ts";
import { systemClock } from "../clock/system.ts";
import { checkWithin, deadlineWithin, type WithinOptions } from "../clock/within.ts";
import { TimeoutError } from "../errors.ts";
import { checkMs, checkOneOf, checkWait } from "../internal/check.ts";
import { type NameOptions, register } from "../internal/names.ts";
import { type EnclosedWork, type Reported, setStage } from "../internal/stage.ts";
import { whenSettled } from "../internal/when-settled.ts";
import type { Policy, RunContext, WaitOptions } from "../policy.ts";
import { isEcho } from "../scope/cancellation.ts";
import { unwatchSoon } from "../internal/kept-listener.ts";
import { keepModel } from "../internal/model.ts";
import { LimitedCall, TimeoutLine } from "./timeout-line.ts";

export interface TimeoutOptions extends NameOptions, WithinOptions {
  /**
   * When the caller has its answer: at the limit or abort, with the work `"abandoned"` if it goes on, or when the work
   * has ended, `"cooperative"`. Such work may still succeed; what it fails with is the `cause` of the `TimeoutError`,
   * unless it is but an echo of the abort. @default "abandoning"
   */
  readonly mode?: "abandoning" | "cooperative" | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

export interface TimeoutContext extends RunContext {
  /** Aborts with the `TimeoutError` at the limit, and with the reason of the caller or of `within` at theirs. */
  readonly signal: AbortSignal;
}

export type TimeoutStats = Readonly<{
  /** Work that has not ended. */
  running: number;
  /** Of this, the work whose caller has its answer already. */
  abandoned: number;
  /** Calls that reached the limit. */
  timedOut: number;
  /** Errors of work after its abort that are no echo of it, and that nobody else hears of. */
  lateErrors: number;
}>;

/** A policy that limits each call to `timeoutMs`, at least 1; `Infinity` for none but `within`. */
export function timeout(timeoutMs: number, options: TimeoutOptions = {}): Timeout {
  return new Timeout(timeoutMs, options);
}

export class Timeout implements Policy {
  readonly timeoutMs: number;
  readonly mode: "abandoning" | "cooperative";
  readonly name: string | undefined;
  readonly #rules: Rules;

  static {
    setStage(Timeout, (policy) => ({ enclose: (work, signal) => policy.#enclose(work, signal) }));
  }

  constructor(timeoutMs: number, options: TimeoutOptions = {}) {
    const { mode = "abandoning", clock = systemClock } = options;
    this.timeoutMs = checkMs("timeoutMs", timeoutMs, { min: 1, infinity: true });
    this.mode = checkOneOf("mode", mode, ["abandoning", "cooperative"]);
    this.#rules = {
      isCooperative: mode === "cooperative",
      limit: checkWithin(options),
      line: timeoutMs < Infinity ? new TimeoutLine(timeoutMs, clock) : undefined,
      counts: { running: 0, abandoned: 0, timedOut: 0, lateErrors: 0 },
    };
    this.name = options.name;
    register("timeout", options, this);
  }

  stats(): TimeoutStats {
    return { ...this.#rules.counts };
  }

  /** Calls `fn` at once. An abort by the caller is the caller's answer, unchanged. */
  run<T>(fn: (context: TimeoutContext) => T | PromiseLike<T>, options: WaitOptions = {}): Promise<T> {
    return new Promise((resolve, reject) => {
      checkWait(options);
      const call = new Call<T>(this.timeoutMs, this.#rules, resolve, reject);
      call.arm(options.signal);
      call.start(fn);
    });
  }

  #enclose(work: EnclosedWork, signal: AbortSignal | undefined): Promise<unknown> {
    const promise = new Promise(keepSettlers);
    const call = new Call(this.timeoutMs, this.#rules, keptResolve, keptReject);
    call.arm(signal);
    call.startEnclosed(work);
    return promise;
  }
}

/** One for all promises, where each would have a function of its own. */
function keepSettlers(resolve: (value: unknown) => void, reject: (reason: unknown) => void): void {
  keptResolve = resolve;
  keptReject = reject;
}

let keptResolve: (value: unknown) => void;
let keptReject: (reason: unknown) => void;

interface Rules {
  readonly isCooperative: boolean;
  readonly limit: WithinOptions;
  readonly line: TimeoutLine | undefined;
  readonly counts: { -readonly [K in keyof TimeoutStats]: TimeoutStats[K] };
}

class Call<T> extends LimitedCall implements Reported {
  // I1  it is in the line and watches until the work has ended or is cancelled, whichever comes first
  // I2  the caller has its answer once: when the work ends, but if abandoned, when it is cancelled
  readonly #timeoutMs: number;
  readonly #rules: Rules;
  readonly #resolve: (value: T) => void;
  readonly #reject: (reason: unknown) => void;
  #relay: Relay | undefined = undefined;
  #controller: AbortController | undefined = undefined;

  constructor(timeoutMs: number, rules: Rules, resolve: (value: T) => void, reject: (reason: unknown) => void) {
    super();
    this.#timeoutMs = timeoutMs;
    this.#rules = rules;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /** Made when somebody asks for it: for work that has no use for it, it would be most of what a call costs. */
  get signal(): AbortSignal {
    return (this.#controller ??= new AbortController()).signal;
  }

  get #isCancelled(): boolean {
    return this.#controller?.signal.aborted === true;
  }

  /** Before the work, since clock, signal and deadline are foreign code. */
  arm(signal: AbortSignal | undefined): void {
    const { limit, line } = this.#rules;
    try {
      const deadline = deadlineWithin(limit);
      if (deadline !== undefined) this.#relay = new Relay(this, deadline.signal);
      line?.join(this);
      if (signal !== undefined) this.watch(signal);
    } catch (error) {
      this.#disarm();
      throw error;
    }
  }

  start(fn: (context: TimeoutContext) => T | PromiseLike<T>): void {
    this.#rules.counts.running += 1;
    try {
      void whenSettled(
        fn(new CallContext(this)),
        (value) => this.succeed(value),
        (error) => this.fail(error),
      );
    } catch (error) {
      this.fail(error);
    }
  }

  startEnclosed(work: EnclosedWork): void {
    this.#rules.counts.running += 1;
    work.start(new CallContext(this), this);
  }

  override onLimit(): void {
    this.#rules.counts.timedOut += 1;
    this.onAbort(new TimeoutError(this.#timeoutMs));
  }

  override onAbort(reason: unknown): void {
    this.#disarm();
    if (!this.#rules.isCooperative) {
      this.#rules.counts.abandoned += 1;
      this.#reject(reason);
    }
    (this.#controller ??= new AbortController()).abort(reason);
  }

  succeed(value: T): void {
    this.#resolve(value); // does nothing if the caller has its answer
    this.#end();
  }

  fail(error: unknown): void {
    if (this.#isCancelled) this.#failLate(error, this.signal);
    else this.#reject(error);
    this.#end();
  }

  #failLate(error: unknown, signal: AbortSignal): void {
    const { isCooperative, counts } = this.#rules;
    const { reason } = signal;
    if (isEcho(error, signal)) this.#reject(reason);
    else if (isCooperative && reason instanceof TimeoutError)
      this.#reject(new TimeoutError(reason.timeoutMs, { cause: error }));
    else {
      counts.lateErrors += 1;
      this.#reject(reason);
    }
  }

  #end(): void {
    const { isCooperative, counts } = this.#rules;
    counts.running -= 1;
    if (!this.#isCancelled) this.#disarm();
    else if (!isCooperative) counts.abandoned -= 1;
  }

  #disarm(): void {
    this.#rules.line?.leave(this);
    unwatchSoon(this);
    this.#relay?.unwatch();
  }
}

/** Keeps the rest of a call from the work. */
class CallContext implements TimeoutContext {
  readonly #call: Pick<Call<unknown>, "signal">;

  constructor(call: Pick<Call<unknown>, "signal">) {
    this.#call = call;
  }

  get signal(): AbortSignal {
    return this.#call.signal;
  }
}

keepModel(
  new Call(
    Infinity,
    {} as Rules,
    () => {},
    () => {},
  ),
);
keepModel(new CallContext({} as Call<unknown>));
