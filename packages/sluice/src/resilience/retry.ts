/**
 * Tries again what failed, a bounded number of times, waiting longer each time. A retry is a bet that it may work again
 * *and* that doing it twice is safe: hand `idempotencyKey` to whoever can tell a repetition. Retry at one layer, the one
 * nearest the call, since layers multiply; put permits and limiters inside, or a slot is held through each wait.
 */
import type { Clock } from "../clock/clock.ts";
import { checkDeadline, Deadline } from "../clock/deadline.ts";
import { sleep } from "../clock/sleep.ts";
import { systemClock } from "../clock/system.ts";
import { DeadlineError } from "../errors.ts";
import { Watcher } from "../internal/abort.ts";
import { checkInteger, checkMs, checkWait } from "../internal/check.ts";
import { type NameOptions, register } from "../internal/names.ts";
import { type Random, systemRandom } from "../internal/random.ts";
import { whenSettled } from "../internal/when-settled.ts";
import type { Policy, RunContext, WaitOptions } from "../policy.ts";
import { type BackoffOptions, backoffMs, checkBackoff } from "./backoff.ts";
import { classifyError, type RetryVerdict } from "./classify.ts";

export interface RetryOptions extends BackoffOptions, NameOptions {
  /** Attempts after the first. An integer >= 0, or `Infinity` for a `deadline` to end. @default 3 */
  readonly retries?: number | undefined;
  /**
   * For all attempts and waits together: a limit in milliseconds for each run, or one `Deadline` for all. When it comes,
   * the run ends with its `TimeoutError`; a wait that would reach it is not begun, and the run ends with
   * `DeadlineError`, whose cause is the last error. @default Infinity
   */
  readonly deadline?: number | Deadline | undefined;
  /** Whether to try again after this error. If it throws, the run rejects with what it threw. @default classifyError */
  readonly classify?: ((error: unknown) => RetryVerdict) | undefined;
  /** Draws the waits. @default Math.random */
  readonly random?: Random | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

export interface RetryRunOptions extends WaitOptions {
  /** The same for all attempts, also those of another run or process. @default a new UUID */
  readonly idempotencyKey?: string | undefined;
}

export interface RetryContext extends RunContext {
  /** 1 for the first. */
  readonly attempt: number;
  /** The same in every attempt. */
  readonly idempotencyKey: string;
}

export type RetryStats = Readonly<{
  /** Runs that go on. */
  running: number;
  /** Of these, the runs that wait for their next attempt. */
  waiting: number;
  /** Attempts so far, and those of them that were not a run's first. */
  attempts: number;
  retries: number;
  /** Attempts under way whose caller has its answer already. */
  abandoned: number;
  /** Errors of such attempts, other than the reason they were ended with. Nobody else hears of them. */
  lateErrors: number;
}>;

/**
 * A policy that makes up to `retries` more attempts. Without options: 3, after up to 100, 200 and 400 ms, and only after
 * errors that `classifyError` knows to pass; to try again after all of them, give `classify: () => "retry"`.
 */
export function retry(options: RetryOptions = {}): Retry {
  return new Retry(options);
}

export class Retry implements Policy {
  readonly name: string | undefined;
  readonly #rules: Rules;

  constructor(options: RetryOptions = {}) {
    const { retries = 3, deadline = Infinity } = options;
    this.#rules = {
      retries: checkInteger("retries", retries, { min: 0, infinity: true }),
      backoff: checkBackoff(options),
      deadline: typeof deadline === "object" ? checkDeadline("deadline", deadline) : checkMs("deadline", deadline),
      classify: options.classify ?? classifyError,
      random: options.random ?? systemRandom,
      clock: options.clock ?? systemClock,
      counts: { running: 0, waiting: 0, attempts: 0, retries: 0, abandoned: 0, lateErrors: 0 },
    };
    this.name = options.name;
    register("retry", options, this);
  }

  stats(): RetryStats {
    return { ...this.#rules.counts };
  }

  /**
   * Calls `fn` at once, and again after each error that is worth it; then rejects with the last error as it was. An
   * error's own `retryAfterMs` is waited for if it is longer than the backoff. The caller's abort ends an attempt, a
   * wait and the run at once, with its reason, and is never retried.
   */
  run<T>(fn: (context: RetryContext) => T | PromiseLike<T>, options: RetryRunOptions = {}): Promise<T> {
    try {
      checkWait(options);
      const { signal, idempotencyKey } = options;
      const rules = this.#rules;
      if (signal === undefined && rules.deadline === Infinity) return this.#runBare(fn, idempotencyKey);
      return new Promise((resolve, reject) => new Run<T>(rules, fn, resolve, reject).start(signal, idempotencyKey));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** What nothing can end from outside needs no `Run` until it fails; with one, it would take twice as long. */
  #runBare<T>(fn: (context: RetryContext) => T | PromiseLike<T>, idempotencyKey: string | undefined): Promise<T> {
    const first = new Context(undefined, idempotencyKey);
    const goOn = (error: unknown): Promise<T> =>
      new Promise((resolve, reject) => new Run<T>(this.#rules, fn, resolve, reject).resume(first, error));
    this.#rules.counts.running += 1;
    this.#rules.counts.attempts += 1;
    try {
      return whenSettled(fn(first), this.#succeed as (value: T) => T, goOn);
    } catch (error) {
      return goOn(error);
    }
  }

  readonly #succeed = (value: unknown): unknown => {
    this.#rules.counts.running -= 1;
    return value;
  };
}

interface Rules {
  readonly retries: number;
  readonly backoff: BackoffOptions;
  readonly deadline: number | Deadline;
  readonly classify: (error: unknown) => RetryVerdict;
  readonly random: Random;
  readonly clock: Clock;
  readonly counts: { -readonly [K in keyof RetryStats]: RetryStats[K] };
}

class Run<T> extends Watcher {
  // I1  until the caller has its answer there is either an attempt under way or a sleep before the next
  // I2  it has its answer once; from then on no attempt starts, and nothing is left but what was abandoned
  readonly #rules: Rules;
  readonly #fn: (context: RetryContext) => T | PromiseLike<T>;
  readonly #resolve: (value: T) => void;
  readonly #reject: (reason: unknown) => void;
  #deadline: Deadline | undefined;
  #phase: "trying" | "judging" | "waiting" = "judging";
  #answer: { readonly reason: unknown } | undefined;

  constructor(
    rules: Rules,
    fn: (context: RetryContext) => T | PromiseLike<T>,
    resolve: (value: T) => void,
    reject: (reason: unknown) => void,
  ) {
    super();
    this.#rules = rules;
    this.#fn = fn;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  start(caller: AbortSignal | undefined, idempotencyKey: string | undefined): void {
    this.#deadline = deadlineOf(this.#rules, caller);
    const signal = this.#deadline?.signal ?? caller;
    signal?.throwIfAborted(); // the deadline may have passed
    if (signal !== undefined) this.watch(signal);
    this.#rules.counts.running += 1;
    this.#try(new Context(signal, idempotencyKey));
  }

  /** From where the first attempt, made without a `Run`, has failed. */
  resume(first: Context, error: unknown): void {
    this.#fail(first, error);
  }

  override onAbort(reason: unknown): void {
    this.#answer = { reason };
    if (this.#phase === "trying") this.#rules.counts.abandoned += 1;
    this.#finish();
    this.#reject(reason);
  }

  #try(context: Context): void {
    this.#phase = "trying";
    this.#rules.counts.attempts += 1;
    try {
      void whenSettled(
        this.#fn(context),
        (value) => this.#succeed(value),
        (error) => this.#fail(context, error),
      );
    } catch (error) {
      this.#fail(context, error);
    }
  }

  #succeed(value: T): void {
    if (this.#isAbandoned()) return;
    this.#finish();
    this.#resolve(value);
  }

  #fail(context: Context, error: unknown): void {
    if (this.#isAbandoned()) {
      if (error !== this.#answer?.reason) this.#rules.counts.lateErrors += 1;
      return;
    }
    try {
      this.#schedule(context, error);
    } catch (reason) {
      this.#giveUp(reason);
    }
  }

  /** The attempt has ended: whether after the caller had its answer. */
  #isAbandoned(): boolean {
    this.#phase = "judging";
    if (this.#answer !== undefined) this.#rules.counts.abandoned -= 1;
    return this.#answer !== undefined;
  }

  /** Begins the wait for the next attempt, or throws what the run ends with. */
  #schedule(context: Context, error: unknown): void {
    const { retries, classify, backoff, random, clock, counts } = this.#rules;
    const { attempt, signal } = context;
    const hintMs = hintOf(error);
    if (attempt > retries || hintMs === Infinity || classify(error) !== "retry") throw error;
    const waitMs = Math.max(hintMs, backoffMs(attempt, backoff, random));
    const leftMs = this.#deadline?.leftMs ?? Infinity;
    if (waitMs >= leftMs) throw new DeadlineError(leftMs, waitMs, { cause: error });
    if (this.#answer !== undefined) return; // `classify` has aborted the run
    this.#phase = "waiting";
    counts.waiting += 1;
    // Also for 0: attempts that fail at once must not block the event loop. A reaction made here runs the next attempt
    // in the async context of the first, wherever the clock has its timers.
    sleep(waitMs, { signal, clock }).then(
      () => this.#wake(context.next()),
      (reason: unknown) => this.#giveUp(reason),
    );
  }

  #wake(context: Context): void {
    if (this.#answer !== undefined) return;
    this.#rules.counts.waiting -= 1;
    this.#rules.counts.retries += 1;
    this.#try(context);
  }

  #giveUp(reason: unknown): void {
    if (this.#answer !== undefined) return;
    this.#finish();
    this.#reject(reason);
  }

  #finish(): void {
    if (this.#phase === "waiting") this.#rules.counts.waiting -= 1;
    this.#rules.counts.running -= 1;
    this.unwatch();
    this.#deadline?.close();
  }
}

class Context implements RetryContext {
  readonly signal: AbortSignal | undefined;
  readonly attempt: number;
  readonly #first: Context | undefined;
  #idempotencyKey: string | undefined;

  constructor(signal: AbortSignal | undefined, idempotencyKey: string | undefined, attempt = 1, first?: Context) {
    this.signal = signal;
    this.attempt = attempt;
    this.#first = first;
    this.#idempotencyKey = idempotencyKey;
  }

  /** Made when an attempt first asks for it. */
  get idempotencyKey(): string {
    return this.#first?.idempotencyKey ?? (this.#idempotencyKey ??= crypto.randomUUID());
  }

  next(): Context {
    return new Context(this.signal, undefined, this.attempt + 1, this.#first ?? this);
  }
}

function deadlineOf({ deadline, clock }: Rules, signal: AbortSignal | undefined): Deadline | undefined {
  if (typeof deadline === "object") return Deadline.after(Infinity, { within: deadline, signal, clock });
  return deadline === Infinity ? undefined : Deadline.after(deadline, { signal, clock });
}

/** What the error says itself about when to try again; `Infinity` for never. */
function hintOf(error: unknown): number {
  if (typeof error !== "object" || error === null || !("retryAfterMs" in error)) return 0;
  const { retryAfterMs } = error;
  return typeof retryAfterMs === "number" && retryAfterMs > 0 ? retryAfterMs : 0;
}
