/** The attempts of a run that can be ended from outside, or whose first attempt has failed. */
import type { Clock, Timer } from "../clock/clock.ts";
import type { Deadline } from "../clock/deadline.ts";
import { Relay } from "../clock/relay.ts";
import { DeadlineError, TimeoutError } from "../errors.ts";
import type { Random } from "../internal/random.ts";
import { isEcho } from "../scope/cancellation.ts";
import type { Backoff } from "./backoff.ts";
import { errorsOf, hintMs, type RetryVerdict } from "./classify.ts";
import type { Attempt } from "./retry-attempt.ts";
import { keepError, recordErrors } from "./retry-errors.ts";
import type { RetryOptions, RetryStats, RetryTask } from "./retry-options.ts";

/** The options of a retry with their defaults, and what it counts. */
export interface RetryRules extends Pick<RetryOptions, "retryResult" | "budget" | "onRetry"> {
  readonly retries: number;
  readonly deadline: number | Deadline | (() => Deadline | undefined);
  readonly backoff: Backoff;
  readonly classify: (error: unknown) => RetryVerdict;
  readonly random: Random;
  readonly clock: Clock;
  /** A call with neither signal nor deadline can be ended by nothing from outside, nor go on after a result. */
  readonly isBare: boolean;
  readonly counts: { -readonly [K in keyof RetryStats]: RetryStats[K] };
}

/** Calls `fn` until it gives an answer or may not be called again; not at once if the first attempt has failed already. */
export function runAttempts<T>(
  rules: RetryRules,
  fn: RetryTask<T>,
  attempt: Attempt,
  signal: AbortSignal | undefined,
  deadline: number | Deadline,
  isFailed: boolean,
  last?: unknown,
): Promise<T> {
  // I1  once `isOver` the caller has its answer, no attempt starts, and there is neither a timer nor a watcher
  // I2  until then an attempt is under way, or is judged, or the next is waited for, and `state` says which
  const { retries, backoff, classify, retryResult, budget, onRetry, random, clock, counts } = rules;
  return new Promise<T>((resolve, reject) => {
    const errors: unknown[] = [];
    let state: "trying" | "judging" | "waiting" = "judging";
    let isOver = false;
    let expiresAt = Infinity;
    let waitMs = 0;
    let deadlineRelay: Relay | undefined;
    let deadlineTimer: Timer | undefined;
    let relay: Relay | undefined;
    let waitTimer: Timer | undefined;

    function finish(): void {
      isOver = true;
      deadlineTimer?.cancel();
      waitTimer?.cancel();
      deadlineRelay?.unwatch();
      relay?.unwatch();
    }

    function onAbort(reason: unknown): void {
      if (isOver) return;
      if (state === "trying") counts.abandoned += 1;
      if (state === "waiting") counts.waiting -= 1;
      finish();
      reject(reason);
      attempt.end(reason);
    }

    function arm(): void {
      if (typeof deadline === "object") {
        expiresAt = clock.now() + deadline.leftMs;
        deadline.signal.throwIfAborted();
        deadlineRelay = new Relay({ onAbort }, deadline.signal);
      } else if (deadline < Infinity) {
        if (deadline === 0) throw new TimeoutError(0);
        expiresAt = clock.now() + deadline;
        const onTimer = (): void => queueMicrotask(() => onAbort(new TimeoutError(deadline))); // an abort of the same turn wins
        deadlineTimer = clock.setTimer(deadline, { onTimer });
      }
      if (signal !== undefined) relay = new Relay({ onAbort }, signal);
    }

    /** Whether to go on, after a wait of `waitMs`; if not, the run ends with `last`. */
    function judge(): boolean {
      const { attempt: number } = attempt;
      if (number > retries || (isFailed && classify(last) !== "retry")) return false;
      waitMs = Math.max(hintOf(last), backoff(number, { previousMs: waitMs, reason: last, random }));
      const leftMs = expiresAt - clock.now();
      if (isFailed && waitMs >= leftMs && waitMs < Infinity) last = new DeadlineError(leftMs, waitMs, { cause: last });
      if (!(waitMs < leftMs) || isOver || budget?.trySpend() === false) return false;
      attempt.end(last);
      void new Promise(() => onRetry?.({ attempt: number, reason: last, waitMs })); // what it throws harms nobody
      return !isOver;
    }

    async function go(): Promise<T> {
      try {
        for (;;) {
          if (!isFailed) {
            state = "trying";
            try {
              last = await fn(attempt);
            } catch (error) {
              isFailed = true;
              last = error;
            }
            state = "judging";
            if (isOver) {
              counts.abandoned -= 1;
              if (isFailed && !isEcho(last, attempt.signal)) counts.lateErrors += 1;
              break;
            }
          }
          if (isFailed) keepError(errors, last);
          else if (retryResult?.(last) !== true) break;
          if (!judge()) break;
          // Also for 0: attempts that fail at once must not block the event loop. Awaited, the next attempt is in the
          // async context of the first, wherever the clock has its timers.
          await new Promise<void>((wake) => {
            waitTimer = clock.setTimer(waitMs, { onTimer: wake });
            state = "waiting";
            counts.waiting += 1;
          });
          if (isOver) break;
          counts.waiting -= 1;
          counts.retries += 1;
          counts.attempts += 1;
          attempt = attempt.next();
          isFailed = false;
        }
      } finally {
        finish();
      }
      if (!isFailed) return last as T;
      recordErrors(last, errors);
      throw last;
    }

    try {
      arm();
      if (!isFailed) {
        budget?.onCall();
        counts.attempts += 1;
      }
    } catch (error) {
      finish(); // clock and signals are foreign code
      throw error;
    }
    go().then(resolve, reject);
  });
}

/** Errors in errors may lead back up. */
const MAX_NESTED = 4;

/** What the error says itself about when to try again, `Infinity` for never; of several, the soonest. */
function hintOf(error: unknown, depth = 0): number {
  const errors = depth < MAX_NESTED ? errorsOf(error) : undefined;
  if (errors !== undefined && errors.length > 0) return Math.min(...errors.map((each) => hintOf(each, depth + 1)));
  return hintMs(error);
}
