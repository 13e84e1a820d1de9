/**
 * The engine of `hedge` and `failover`: a run of attempts of which the first to succeed is the answer. The next begins
 * when one fails, or when none has answered for a while.
 */
import type { Clock, Timer } from "../clock/clock.ts";
import type { Deadline } from "../clock/deadline.ts";
import { Relay } from "../clock/relay.ts";
import { systemClock } from "../clock/system.ts";
import { checkWithin, deadlineWithin, type WithinOptions } from "../clock/within.ts";
import { Watcher } from "../internal/abort.ts";
import { unwatchSoon } from "../internal/kept-listener.ts";
import { checkFunction, checkInteger, checkMs, checkWait } from "../internal/check.ts";
import { tell } from "../internal/tell.ts";
import { whenSettled } from "../internal/when-settled.ts";
import type { WaitOptions } from "../policy.ts";
import { Cancellation, CancellationContext } from "../scope/cancellation.ts";
import { isRefusal } from "./classify.ts";
import { classifyFailover } from "./failover-verdict.ts";
import type { AttemptOptions, FailoverContext, FailoverVerdict, HedgeAfter, HedgeStats } from "./hedge-options.ts";

export interface AttemptRules<Target> extends Pick<AttemptOptions, "budget" | "onUndelivered"> {
  readonly maxAttempts: number;
  /** By attempt, if they differ. */
  readonly targets: readonly Target[] | undefined;
  readonly concurrency: number;
  readonly hedgeAfterMs: HedgeAfter;
  readonly limit: WithinOptions;
  readonly classify: (error: unknown) => FailoverVerdict;
  readonly clock: Clock;
  readonly counts: { -readonly [K in keyof HedgeStats]: HedgeStats[K] };
}

export function attemptRules<Target>(
  options: AttemptOptions & { readonly hedgeAfterMs: HedgeAfter },
  maxAttempts: number,
  targets?: readonly Target[],
): AttemptRules<Target> {
  const { hedgeAfterMs, concurrency = Infinity, classify = classifyFailover, budget, onUndelivered } = options;
  if (typeof hedgeAfterMs === "object")
    checkFunction("hedgeAfterMs.record", (hedgeAfterMs as { readonly record?: unknown } | null)?.record);
  if (typeof hedgeAfterMs !== "function") delayOf(hedgeAfterMs, 1);
  if (onUndelivered !== undefined) checkFunction("onUndelivered", onUndelivered);
  return {
    maxAttempts: checkInteger("maxAttempts", maxAttempts, { min: 1 }),
    targets,
    concurrency: checkInteger("concurrency", concurrency, { min: 1, infinity: true }),
    hedgeAfterMs,
    limit: checkWithin(options),
    classify: checkFunction("classify", classify),
    budget,
    onUndelivered,
    clock: options.clock ?? systemClock,
    counts: { running: 0, attempts: 0, extra: 0, extraWon: 0, refused: 0, losers: 0, lateErrors: 0 },
  };
}

export type AttemptTask<Target, T> = (context: FailoverContext<Target>) => T | PromiseLike<T>;

export function runAttempts<Target, T>(
  rules: AttemptRules<Target>,
  fn: AttemptTask<Target, T>,
  options: WaitOptions,
): Promise<T> {
  return new Promise((resolve, reject) => {
    checkWait(options);
    new Run<Target, T>(rules, fn, resolve, reject).start(options.signal);
  });
}

class Run<Target, T> extends Watcher {
  // I1  until the caller has its answer an attempt is under way; from then on none begins, and no timer is left
  // I2  an attempt's signal aborts exactly if the caller has an answer from elsewhere while it is under way
  // I3  there is a timer only while another attempt may begin, and one at most
  readonly #rules: AttemptRules<Target>;
  readonly #fn: AttemptTask<Target, T>;
  readonly #resolve: (value: T) => void;
  readonly #reject: (reason: unknown) => void;
  /** In the order of their beginning. */
  readonly #running: Attempt[] = [];
  /** By attempt. */
  readonly #errors: unknown[] = [];
  #begun = 0;
  #stop: { readonly error: unknown } | undefined;
  #deadline: Deadline | undefined;
  #relay: Relay | undefined;
  #timer: Timer | undefined;
  #isAnswered = false;

  constructor(
    rules: AttemptRules<Target>,
    fn: AttemptTask<Target, T>,
    resolve: (value: T) => void,
    reject: (reason: unknown) => void,
  ) {
    super();
    this.#rules = rules;
    this.#fn = fn;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  start(signal: AbortSignal | undefined): void {
    const { limit, budget, counts } = this.#rules;
    counts.running += 1;
    try {
      this.#deadline = deadlineWithin(limit);
      if (this.#deadline !== undefined) this.#relay = new Relay(this, this.#deadline.signal);
      if (signal !== undefined) this.watch(signal);
      budget?.onCall();
      this.#begin();
    } catch (error) {
      this.#giveUp(error);
    }
  }

  override onAbort(reason: unknown): void {
    this.#giveUp(reason);
  }

  /** Throws what the clock or the function for the delay throws. */
  #begin(): void {
    const { targets, hedgeAfterMs, clock, counts } = this.#rules;
    const index = this.#begun;
    const attempt = new Attempt(index, typeof hedgeAfterMs === "object" ? clock.now() : 0);
    this.#begun += 1;
    this.#running.push(attempt);
    counts.attempts += 1;
    if (index > 0) counts.extra += 1;
    void whenSettled(
      this.#call(new AttemptContext(attempt, targets?.[index] as Target)),
      (value) => this.#succeed(attempt, value),
      (error) => this.#fail(attempt, error),
    );
    this.#setTimer();
  }

  /** What `fn` throws is a rejection, a microtask later: attempts that fail at once must not begin within one another. */
  #call(context: FailoverContext<Target>): T | PromiseLike<T> {
    const fn = this.#fn; // which is not to be called as a method of this
    try {
      return fn(context);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Whenever an attempt has begun. */
  #setTimer(): void {
    const { hedgeAfterMs, clock } = this.#rules;
    this.#clearTimer();
    if (!this.#hasRoom()) return;
    const delayMs = delayOf(hedgeAfterMs, this.#begun);
    if (delayMs === Infinity || this.#isAnswered) return;
    // A reaction made here runs the next attempt in the async context of the first, wherever the clock has its timers;
    // and an abort in the turn of the timer comes first.
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = clock.setTimer(delayMs, { onTimer: resolve });
    this.#timer = timer;
    void promise.then(() => this.#onDelay(timer));
  }

  #onDelay(timer: Timer): void {
    if (this.#timer !== timer) return;
    try {
      this.#beginNext();
    } catch (error) {
      this.#giveUp(error);
    }
  }

  #clearTimer(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** `isInPlace` of one that asked nobody. */
  #beginNext(isInPlace = false): void {
    this.#clearTimer();
    if (this.#hasRoom() && this.#isAllowed(isInPlace) && !this.#isAnswered) this.#begin();
  }

  #hasRoom(): boolean {
    const { maxAttempts, concurrency } = this.#rules;
    const isOver = this.#isAnswered || this.#stop !== undefined;
    return !isOver && this.#begun < maxAttempts && this.#running.length < concurrency;
  }

  #isAllowed(isInPlace: boolean): boolean {
    const { limit, budget, counts } = this.#rules;
    if (this.#deadline !== undefined && this.#deadline.leftMs < (limit.neededMs ?? 0)) return false;
    const isAllowed = isInPlace || budget === undefined || budget.trySpend();
    if (!isAllowed) counts.refused += 1;
    return isAllowed;
  }

  #succeed(attempt: Attempt, value: T): void {
    const { onUndelivered, counts } = this.#rules;
    this.#running.splice(this.#running.indexOf(attempt), 1);
    if (this.#isAnswered) {
      counts.losers -= 1;
      tell(onUndelivered, value);
      return;
    }
    if (attempt.index > 0) counts.extraWon += 1;
    this.#end();
    this.#resolve(value);
    this.#record(attempt);
    if (this.#running.length > 0) this.#cancelRest(new DOMException("another attempt has won", "AbortError"));
  }

  #fail(attempt: Attempt, error: unknown): void {
    const { classify, counts } = this.#rules;
    this.#running.splice(this.#running.indexOf(attempt), 1);
    if (this.#isAnswered) {
      counts.losers -= 1;
      if (!attempt.isEcho(error)) counts.lateErrors += 1;
      return;
    }
    this.#errors[attempt.index] = error;
    try {
      if (classify(error) === "stop") this.#stop ??= { error };
      this.#beginNext(isRefusal(error));
      if (this.#running.length === 0) this.#giveUp(this.#failure(error));
    } catch (reason) {
      this.#giveUp(reason);
    }
  }

  /** All have failed. The last error is also the cause, for whoever classifies it. */
  #failure(cause: unknown): unknown {
    if (this.#stop !== undefined) return this.#stop.error;
    return new AggregateError(this.#errors, `all ${this.#errors.length} attempts failed`, { cause });
  }

  /**
   * What it learns is how long the first attempt takes. If another won, all that is known is that the first takes longer
   * than it has by now: left out, the slow calls would be missing and the delay fall with each hedge.
   */
  #record(winner: Attempt): void {
    const { hedgeAfterMs, clock } = this.#rules;
    if (typeof hedgeAfterMs !== "object") return;
    const first = winner.index === 0 ? winner : this.#running[0];
    if (first?.index === 0) tell(() => hedgeAfterMs.record(clock.now() - first.startedAt));
  }

  /** Nothing if the caller has its answer. */
  #giveUp(reason: unknown): void {
    if (this.#isAnswered) return;
    this.#end();
    this.#reject(reason);
    this.#cancelRest(reason);
  }

  #end(): void {
    this.#isAnswered = true;
    this.#clearTimer();
    unwatchSoon(this);
    this.#relay?.unwatch();
    this.#rules.counts.running -= 1;
    this.#rules.counts.losers += this.#running.length;
  }

  #cancelRest(reason: unknown): void {
    for (const attempt of this.#running) attempt.cancel(reason);
  }
}

class Attempt extends Cancellation {
  readonly index: number;
  /** For a delay that learns; else 0. */
  readonly startedAt: number;

  constructor(index: number, startedAt: number) {
    super();
    this.index = index;
    this.startedAt = startedAt;
  }
}

class AttemptContext<Target> extends CancellationContext implements FailoverContext<Target> {
  readonly attempt: number;
  readonly target: Target;

  constructor(attempt: Attempt, target: Target) {
    super(attempt);
    this.attempt = attempt.index + 1;
    this.target = target;
  }
}

function delayOf(after: HedgeAfter, attempt: number): number {
  const delayMs = typeof after === "function" ? after(attempt) : typeof after === "object" ? after.ms : after;
  return checkMs("hedgeAfterMs", delayMs);
}
