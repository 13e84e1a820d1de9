/** The first attempt of a run that its caller may abort: all there is to nearly each of them. */
import { Watcher } from "../internal/abort.ts";
import { unwatchSoon } from "../internal/kept-listener.ts";
import { keepModel } from "../internal/model.ts";
import { whenSettled } from "../internal/when-settled.ts";
import { isEcho } from "../scope/cancellation.ts";
import { Attempt } from "./retry-attempt.ts";
import type { RetryTask } from "./retry-options.ts";
import { type RetryRules, runAttempts } from "./retry-run.ts";

export class FirstAttempt<T> extends Watcher {
  // I1  it watches until the attempt has ended, or until the abort, which is the caller's answer: so an attempt that ends
  //     when nobody watches was abandoned
  readonly #rules: RetryRules;
  readonly #fn: RetryTask<T>;
  readonly #attempt: Attempt;
  readonly #resolve: (value: T | Promise<T>) => void;
  readonly #reject: (reason: unknown) => void;

  constructor(
    rules: RetryRules,
    fn: RetryTask<T>,
    attempt: Attempt,
    resolve: (value: T | Promise<T>) => void,
    reject: (reason: unknown) => void,
  ) {
    super();
    this.#rules = rules;
    this.#fn = fn;
    this.#attempt = attempt;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /** Throws what the signal or the budget throws. */
  start(signal: AbortSignal): void {
    const { budget, counts } = this.#rules;
    this.watch(signal);
    try {
      budget?.onCall();
    } catch (error) {
      this.unwatch();
      throw error;
    }
    counts.attempts += 1;
    const fn = this.#fn; // which is not to be called as a method of this
    try {
      void whenSettled(
        fn(this.#attempt),
        (value) => this.#succeed(value),
        (error) => this.#fail(error),
      );
    } catch (error) {
      this.#fail(error);
    }
  }

  override onAbort(reason: unknown): void {
    this.#rules.counts.abandoned += 1;
    this.#reject(reason);
    this.#attempt.end(reason);
  }

  #succeed(value: T): void {
    if (this.watchers === undefined) this.#rules.counts.abandoned -= 1;
    else {
      this.#resolve(value);
      unwatchSoon(this);
    }
  }

  #fail(error: unknown): void {
    const { counts } = this.#rules;
    const signal = this.watchers?.signal;
    if (signal !== undefined) {
      unwatchSoon(this);
      this.#resolve(runAttempts(this.#rules, this.#fn, this.#attempt, signal, Infinity, true, error));
      return;
    }
    counts.abandoned -= 1;
    if (!isEcho(error, this.#attempt.signal)) counts.lateErrors += 1;
  }
}

keepModel(
  new FirstAttempt(
    {} as RetryRules,
    () => {},
    new Attempt(1),
    () => {},
    () => {},
  ),
);
