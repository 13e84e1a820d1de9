/** What `hedge` and `failover` are told, and what they tell. */
import type { Clock } from "../clock/clock.ts";
import type { WithinOptions } from "../clock/within.ts";
import type { NameOptions } from "../internal/names.ts";
import type { RunContext } from "../policy.ts";
import type { RetryBudget } from "./retry-budget.ts";

/** How long an attempt may go without an answer until the next begins. Told of the latencies it can learn from. */
export interface HedgeDelay {
  /** At least 0; `Infinity` for no next one. */
  readonly ms: number;
  record(latencyMs: number): void;
}

/** "next": another attempt may begin. "stop": none would do better; those under way still may. */
export type FailoverVerdict = "next" | "stop";

export interface AttemptOptions extends NameOptions, WithinOptions {
  /** Attempts of one run under way at a time. An integer >= 1. @default Infinity */
  readonly concurrency?: number | undefined;
  /**
   * Whether an error lets another attempt begin. If it throws, the run rejects with what it threw.
   * @default classifyFailover
   */
  readonly classify?: ((error: unknown) => FailoverVerdict) | undefined;
  /**
   * Has to allow each attempt after a run's first, but for one in place of what a breaker or limit of ours refused, which
   * has asked nobody. To be shared with the retries of the same service. Within a retry that has counted the call already,
   * `{ onCall() {}, trySpend: () => budget.trySpend() }` counts it once.
   */
  readonly budget?: Pick<RetryBudget, "onCall" | "trySpend"> | undefined;
  /** Takes what an attempt came up with after its run had its answer. What it throws is an unhandled rejection. */
  readonly onUndelivered?: ((value: unknown) => void) | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

/**
 * When the next attempt begins though none has failed, counted from the last one's beginning: after so many
 * milliseconds, after what a function says of the last attempt's number, or after a share of the latest latencies, as
 * with `new LatencyPercentile(95)`. `Infinity` for never.
 */
export type HedgeAfter = number | ((attempt: number) => number) | HedgeDelay;

export interface HedgeOptions extends AttemptOptions {
  readonly hedgeAfterMs: HedgeAfter;
  /** With the first. An integer >= 1. @default 2 */
  readonly maxAttempts?: number | undefined;
}

export interface FailoverOptions extends AttemptOptions {
  /** @default Infinity: only a failure lets the next begin */
  readonly hedgeAfterMs?: HedgeAfter | undefined;
}

export interface HedgeContext extends RunContext {
  /**
   * Of this attempt alone. Aborts when the run is ended from outside, with that reason, and when another attempt has
   * won, with an `AbortError`; never once this one has won.
   */
  readonly signal: AbortSignal;
  /** 1 for the first. */
  readonly attempt: number;
}

export interface FailoverContext<Target> extends HedgeContext {
  /** Whose turn it is: each has one, in order. */
  readonly target: Target;
}

export type HedgeStats = Readonly<{
  /** Runs that go on. */
  running: number;
  /** So far: attempts, those of them that were not a run's first, and runs that one of these has won. */
  attempts: number;
  extra: number;
  extraWon: number;
  /** Attempts that the budget refused. */
  refused: number;
  /** Attempts under way whose run has its answer already. */
  losers: number;
  /** Errors of such attempts that are no echo of their abort. Nobody else hears of them. */
  lateErrors: number;
}>;
