/**
 * Tries again what failed, a bounded number of times, waiting longer each time. A retry is a bet that it may work again
 * *and* that doing it twice is safe: hand `idempotencyKey` to whoever can tell a repetition. Retry at one layer, the one
 * nearest the call, since layers multiply; put permits and limiters inside, or a slot is held through each wait.
 */
import type { Deadline } from "../clock/deadline.ts";
import { systemClock } from "../clock/system.ts";
import { checkFunction, checkInteger, checkMs, checkString, checkWait } from "../internal/check.ts";
import { register } from "../internal/names.ts";
import { systemRandom } from "../internal/random.ts";
import { type PassStage, setStage, type StagedCall } from "../internal/stage.ts";
import { whenSettled } from "../internal/when-settled.ts";
import type { Policy } from "../policy.ts";
import { isEcho } from "../scope/cancellation.ts";
import { exponentialBackoff, fullJitter } from "./backoff.ts";
import { classifyError } from "./classify.ts";
import { Attempt } from "./retry-attempt.ts";
import { FirstAttempt } from "./retry-first.ts";
import type { RetryOptions, RetryRunOptions, RetryStats, RetryTask } from "./retry-options.ts";
import { type RetryRules, runAttempts } from "./retry-run.ts";

/**
 * A policy that makes up to `retries` more attempts. Without options: 3, after up to 100, 200 and 400 ms, and only after
 * errors that `classifyError` knows to pass; to try again after all of them, give `classify: () => "retry"`.
 */
export function retry(options: RetryOptions = {}): Retry {
  return new Retry(options);
}

const PLAIN: RetryRunOptions = {};

export class Retry implements Policy {
  readonly name: string | undefined;
  readonly #rules: RetryRules;

  static {
    setStage(Retry, (policy) => {
      const rules = policy.#rules;
      return rules.isBare ? stageFor(rules) : undefined;
    });
  }

  constructor(options: RetryOptions = {}) {
    const { retries = 3, deadline = Infinity, retryResult, budget, onRetry, clock = systemClock } = options;
    if (retryResult !== undefined) checkFunction("retryResult", retryResult);
    if (onRetry !== undefined) checkFunction("onRetry", onRetry);
    this.#rules = {
      retries: checkInteger("retries", retries, { min: 0, infinity: true }),
      deadline: typeof deadline === "function" ? deadline : checkLimit(deadline),
      backoff: checkFunction("backoff", options.backoff ?? fullJitter(exponentialBackoff(options))),
      classify: checkFunction("classify", options.classify ?? classifyError),
      retryResult,
      budget,
      onRetry,
      random: checkFunction("random", options.random ?? systemRandom),
      clock,
      isBare: deadline === Infinity && retryResult === undefined,
      counts: { attempts: 0, retries: 0, waiting: 0, abandoned: 0, lateErrors: 0 },
    };
    this.name = options.name;
    register("retry", options, this);
  }

  stats(): RetryStats {
    return { ...this.#rules.counts };
  }

  /**
   * Calls `fn` at once, and again after each error that is worth it; then rejects with the last error as it was, and
   * `attemptErrors` knows those before. An error's own `retryAfterMs` is waited for if it is longer than the backoff.
   * The caller's abort ends an attempt, a wait and the run at once, with its reason, and is never retried.
   */
  run<T>(fn: RetryTask<T>, options: RetryRunOptions = PLAIN): Promise<T> {
    try {
      const rules = this.#rules;
      if (options === PLAIN && rules.isBare) return runBare(rules, fn, new Attempt(1));
      checkWait(options);
      const { signal, idempotencyKey, deadline: source = rules.deadline } = options;
      const deadline = checkLimit(typeof source === "function" ? source() : source);
      const first = new Attempt(1, checkKey(idempotencyKey));
      if (deadline !== Infinity || rules.retryResult !== undefined)
        return runAttempts(rules, fn, first, signal, deadline, false);
      return signal === undefined ? runBare(rules, fn, first) : runWatching(rules, fn, first, signal);
    } catch (error) {
      return Promise.reject(error);
    }
  }
}

/** A deadline need not be one of ours: it may come from another copy of the package. */
function checkLimit(deadline: number | Deadline = Infinity): number | Deadline {
  checkMs("deadline", typeof deadline === "object" ? deadline?.leftMs : deadline);
  return deadline;
}

function checkKey(key: string | undefined): string | undefined {
  if (key !== undefined) checkString("idempotencyKey", key);
  if (key !== "") return key;
  throw new RangeError('idempotencyKey must not be empty, got ""'); // the same in all calls, it would make them one
}

/** What nothing ends from outside needs no more than this until it fails; with all the rest, it would take twice as long. */
function runBare<T>(rules: RetryRules, fn: RetryTask<T>, first: Attempt): Promise<T> {
  const goOn = (error: unknown): Promise<T> => runAttempts(rules, fn, first, undefined, Infinity, true, error);
  rules.budget?.onCall();
  rules.counts.attempts += 1;
  try {
    return whenSettled(fn(first), asItIs, goOn);
  } catch (error) {
    return goOn(error);
  }
}

function runWatching<T>(rules: RetryRules, fn: RetryTask<T>, first: Attempt, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => new FirstAttempt(rules, fn, first, resolve, reject).start(signal));
}

/** As `runBare`. */
function stageFor(rules: RetryRules): PassStage {
  const { counts, budget } = rules;

  function goOn(error: unknown, first: Attempt, call: StagedCall): Promise<unknown> {
    const { signal } = call;
    if (signal?.aborted !== true)
      return runAttempts(rules, (context) => call.again(context), first, signal, Infinity, true, error);
    if (!isEcho(error, signal)) counts.lateErrors += 1;
    throw signal.reason;
  }

  return {
    hasContext: true,
    enter({ signal, idempotencyKey, deadline }: RetryRunOptions, around) {
      if (signal !== undefined || deadline !== undefined) return undefined; // the caller's abort is to end it at once
      const first = new Attempt(1, checkKey(idempotencyKey), around);
      budget?.onCall();
      counts.attempts += 1;
      return first;
    },
    leave(entered, isFulfilled, result, call) {
      const first = entered as Attempt;
      first.leave();
      return isFulfilled ? undefined : goOn(result, first, call);
    },
  };
}

/** `then` passes a value on faster by itself. */
const asItIs = undefined as unknown as <T>(value: T) => T;
