/** What a retry is told, and what it tells. */
import type { Clock } from "../clock/clock.ts";
import type { Deadline } from "../clock/deadline.ts";
import type { NameOptions } from "../internal/names.ts";
import type { Random } from "../internal/random.ts";
import type { RunContext, WaitOptions } from "../policy.ts";
import type { Backoff, BackoffOptions } from "./backoff.ts";
import type { RetryVerdict } from "./classify.ts";
import type { RetryBudget } from "./retry-budget.ts";

export interface RetryOptions extends BackoffOptions, NameOptions {
  /** Attempts after the first. An integer >= 0, or `Infinity` for a `deadline` to end. @default 3 */
  readonly retries?: number | undefined;
  /** In place of exponential backoff with full jitter, which `baseMs`, `maxMs` and `factor` are for. */
  readonly backoff?: Backoff | undefined;
  /**
   * For all attempts and waits together: a limit in milliseconds for each run, at least 0, a `Deadline` for all runs, or
   * what gives that of a call. When it comes, the run ends with its `TimeoutError`; a wait that would reach it is not
   * begun, and the run ends with `DeadlineError`, whose cause is the last error. @default Infinity
   */
  readonly deadline?: number | Deadline | (() => Deadline | undefined) | undefined;
  /** Whether to try again after this error. If it throws, the run rejects with what it threw. @default classifyError */
  readonly classify?: ((error: unknown) => RetryVerdict) | undefined;
  /**
   * Whether to try again after this result. The run resolves with the last one, wanted or not, when there may be no
   * further attempt. @default none is tried again
   */
  readonly retryResult?: ((result: unknown) => boolean) | undefined;
  /** Has to allow each retry; if it doesn't, the run ends with the last error. To be shared by all that call one service. */
  readonly budget?: Pick<RetryBudget, "onCall" | "trySpend"> | undefined;
  /** Told of each retry before its wait. What it throws is an unhandled rejection and changes nothing. */
  readonly onRetry?: ((event: RetryEvent) => void) | undefined;
  /** Draws the waits. @default Math.random */
  readonly random?: Random | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

export interface RetryEvent {
  /** The number of the attempt that failed, 1 for the first. */
  readonly attempt: number;
  /** What it failed with, or its result. */
  readonly reason: unknown;
  /** Until the next. */
  readonly waitMs: number;
}

export interface RetryRunOptions extends WaitOptions {
  /** The same for all attempts, also those of another run or process. @default a new UUID */
  readonly idempotencyKey?: string | undefined;
  /** Of this run, in place of the policy's. */
  readonly deadline?: number | Deadline | undefined;
}

export interface RetryContext extends RunContext {
  /**
   * Of this attempt alone. Aborts when the run is ended from outside, and when another attempt follows, with the error
   * of this one: what it left behind is not wanted any more. Never after an attempt that gave the run its outcome.
   */
  readonly signal: AbortSignal;
  /** 1 for the first. */
  readonly attempt: number;
  /** The same in every attempt. */
  readonly idempotencyKey: string;
}

export type RetryTask<T> = (context: RetryContext) => T | PromiseLike<T>;

export type RetryStats = Readonly<{
  /** Attempts so far, and those of them that were not a run's first. */
  attempts: number;
  retries: number;
  /** Runs that wait for their next attempt. */
  waiting: number;
  /** Attempts under way whose caller has its answer already. */
  abandoned: number;
  /** Errors of such attempts, other than the reason they were ended with. Nobody else hears of them. */
  lateErrors: number;
}>;
