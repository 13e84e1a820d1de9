/**
 * Tries again what failed, a bounded number of times, waiting longer each time. A retry is a bet that it may work again
 * *and* that doing it twice is safe: hand `idempotencyKey` to whoever can tell a repetition. Retry at one layer, the one
 * nearest the call, since layers multiply; put permits and limiters inside, or a slot is held through each wait.
 */
import type { Clock, Timer, TimerTask } from "../clock/clock.ts";
import { Deadline } from "../clock/deadline.ts";
import { systemClock } from "../clock/system.ts";
import { DeadlineError } from "../errors.ts";
import { Watcher } from "../internal/abort.ts";
import { checkInteger, checkMs, checkWait } from "../internal/check.ts";
import { register } from "../internal/names.ts";
import { type Random, systemRandom } from "../internal/random.ts";
import type { Policy, RunContext, WaitOptions } from "../policy.ts";
import { type BackoffOptions, backoffMs, checkBackoff } from "./backoff.ts";
import { classifyError, type RetryVerdict } from "./classify.ts";

export interface RetryOptions extends BackoffOptions {
  /** Attempts after the first. May be `Infinity`, for a `deadline` to end. @default 3 */
  readonly retries?: number | undefined;
  /**
   * For all attempts and waits together: a limit in milliseconds for each run, or one `Deadline` for all. When it comes,
   * the run ends with its `TimeoutError`; a wait that would reach it is not begun, and the run ends with
   * `DeadlineError`, whose cause is the last error. @default Infinity
   */
  readonly deadline?: number | Deadline | undefined;
  /** Whether to try again after this error. If it throws, the run rejects with what it threw. @default classifyError */
  readonly classify?: ((error: unknown) => RetryVerdict) | undefined;
  /** Makes it visible to `sluice/observe`. */
  readonly name?: string | undefined;
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

/** A policy that makes up to `retries` more attempts. Without options: 3, after up to 100, 200 and 400 ms. */
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
      deadline: typeof deadline === "object" ? deadline : checkMs("deadline", deadline),
      classify: options.classify ?? classifyError,
      random: options.random ?? systemRandom,
      clock: options.clock ?? systemClock,
      counts: { running: 0, waiting: 0, attempts: 0, retries: 0, abandoned: 0, lateErrors: 0 },
    };
    this.name = options.name;
    register("retry", this.name, this);
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
    return new Promise((resolve, reject) => {
      checkWait(options);
      const run = new Run<T>(this.#rules, fn, options, resolve, reject);
      run.start();
    });
  }
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

class Run<T> extends Watcher implements TimerTask {
  // I1  until the caller has its answer there is either an attempt under way or #timer for the next
  // I2  it has its answer once; from then on no attempt starts, and nothing is left but what was abandoned
  readonly signal: AbortSignal | undefined;
  readonly #rules: Rules;
  readonly #fn: (context: RetryContext) => T | PromiseLike<T>;
  readonly #resolve: (value: T) => void;
  readonly #reject: (reason: unknown) => void;
  readonly #deadline: Deadline | undefined;
  #idempotencyKey: string | undefined;
  #attempt = 0;
  #isTrying = false;
  #timer: Timer | undefined;
  #answer: { readonly reason: unknown } | undefined;

  constructor(
    rules: Rules,
    fn: (context: RetryContext) => T | PromiseLike<T>,
    { signal, idempotencyKey }: RetryRunOptions,
    resolve: (value: T) => void,
    reject: (reason: unknown) => void,
  ) {
    super();
    this.#rules = rules;
    this.#fn = fn;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#idempotencyKey = idempotencyKey;
    this.#deadline = deadlineOf(rules, signal);
    this.signal = this.#deadline?.signal ?? signal;
  }

  /** Made when an attempt first asks for it. */
  get idempotencyKey(): string {
    return (this.#idempotencyKey ??= crypto.randomUUID());
  }

  start(): void {
    this.signal?.throwIfAborted(); // the deadline may have passed
    if (this.signal !== undefined) this.watch(this.signal);
    this.#rules.counts.running += 1;
    this.#try();
  }

  onTimer(): void {
    this.#timer = undefined;
    this.#rules.counts.waiting -= 1;
    this.#rules.counts.retries += 1;
    this.#try();
  }

  override onAbort(reason: unknown): void {
    this.#answer = { reason };
    if (this.#isTrying) this.#rules.counts.abandoned += 1;
    if (this.#timer !== undefined) this.#rules.counts.waiting -= 1;
    this.#finish();
    this.#reject(reason);
  }

  #try(): void {
    this.#attempt += 1;
    this.#isTrying = true;
    this.#rules.counts.attempts += 1;
    try {
      const result = this.#fn(new Context(this, this.#attempt));
      Promise.resolve(result).then(
        (value) => this.#succeed(value),
        (error: unknown) => this.#fail(error),
      );
    } catch (error) {
      this.#fail(error);
    }
  }

  #succeed(value: T): void {
    if (this.#isAbandoned()) return;
    this.#finish();
    this.#resolve(value);
  }

  #fail(error: unknown): void {
    if (this.#isAbandoned()) {
      if (error !== this.#answer?.reason) this.#rules.counts.lateErrors += 1;
      return;
    }
    try {
      this.#schedule(error);
    } catch (reason) {
      if (this.#answer === undefined) this.#finish();
      this.#reject(reason);
    }
  }

  /** The attempt has ended: whether after the caller had its answer. */
  #isAbandoned(): boolean {
    this.#isTrying = false;
    if (this.#answer !== undefined) this.#rules.counts.abandoned -= 1;
    return this.#answer !== undefined;
  }

  /** Sets the timer for the next attempt, or throws what the run ends with. */
  #schedule(error: unknown): void {
    const { retries, classify, backoff, random, clock, counts } = this.#rules;
    const hintMs = hintOf(error);
    if (this.#attempt > retries || hintMs === Infinity || classify(error) !== "retry") throw error;
    const waitMs = Math.max(hintMs, backoffMs(this.#attempt, backoff, random));
    const leftMs = this.#deadline?.leftMs ?? Infinity;
    if (waitMs >= leftMs) throw new DeadlineError(leftMs, waitMs, { cause: error });
    if (this.#answer !== undefined) return; // `classify` has aborted the run
    this.#timer = clock.setTimer(waitMs, this); // also for 0: attempts that fail at once must not block the event loop
    counts.waiting += 1;
  }

  #finish(): void {
    this.#rules.counts.running -= 1;
    this.#timer?.cancel();
    this.unwatch();
    this.#deadline?.close();
  }
}

class Context implements RetryContext {
  readonly signal: AbortSignal | undefined;
  readonly attempt: number;
  readonly #run: { readonly idempotencyKey: string };

  constructor(run: { readonly signal: AbortSignal | undefined; readonly idempotencyKey: string }, attempt: number) {
    this.signal = run.signal;
    this.attempt = attempt;
    this.#run = run;
  }

  get idempotencyKey(): string {
    return this.#run.idempotencyKey;
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
