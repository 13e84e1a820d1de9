/** What an `AdaptiveLimiter` is told, what its parts tell each other, and what it tells. */
import type { Clock } from "../clock/clock.ts";
import type { NameOptions } from "../internal/names.ts";
import type { PriorityWaitOptions } from "../policy.ts";
import type { CircuitOutcome } from "./classify.ts";
import type { LoadVerdict } from "./load-verdict.ts";

/** How much is lost if a call is turned away: under load, the least critical goes first. */
export type Criticality = "critical" | "normal" | "sheddable";

/** A call that has ended, for who finds the limit. */
export interface LimitSample {
  /** On the monotonic clock. */
  readonly startedAt: number;
  readonly endedAt: number;
  /** Calls that ran when it started, itself included. */
  readonly running: number;
  /** Whether its outcome tells of a dependency that can't keep up. */
  readonly isOverload: boolean;
}

export interface LimitRule {
  /** The limit after this call, where it was `limit` before; whole or not. What isn't a number > 0 changes nothing. */
  next(limit: number, sample: LimitSample): number;
}

/** Makes the rule of one limiter: rules remember, so no two limiters share one. */
export type LimitStrategy = () => LimitRule;

export interface JoinTerms {
  /** How long who joins now may wait, at most; `Infinity` for as long as the caller will. */
  readonly maxWaitMs: number;
  /** Whether who joins now goes before those who wait already with the same priority. */
  readonly isNewestFirst: boolean;
}

export interface LineRule {
  /** The terms of who joins a line of `waiting`. */
  join(now: number, waiting: number): JoinTerms;
}

/** Makes the rule of one line. */
export type LineDiscipline = () => LineRule;

/** Whether to turn away a newcomer at this load: what runs and waits, as a multiple of the limit. */
export type ShedRule = (criticality: Criticality, load: number) => boolean;

export interface AdaptiveLimiterOptions extends NameOptions {
  /** Where the limit starts. An integer from `minConcurrency` to `maxConcurrency`. @default 20, or the nearest to it */
  readonly initialConcurrency?: number | undefined;
  /** It never falls below. An integer >= 1. @default 1 */
  readonly minConcurrency?: number | undefined;
  /** It never rises above. An integer >= `minConcurrency`. @default 1_000 */
  readonly maxConcurrency?: number | undefined;
  /** Callers allowed to wait; the next one gets `OverloadedError`. An integer >= 0. @default Infinity */
  readonly maxWaiting?: number | undefined;
  /** Who may wait for how long, and who goes first, such as `codel()`. @default first come, first served, without limit */
  readonly discipline?: LineDiscipline | undefined;
  /** Whom to turn away as the load rises, such as `shedByCriticality()`. @default nobody */
  readonly shed?: ShedRule | undefined;
  /**
   * What an outcome says about the load. If it throws, the call rejects with what it threw. A call that rejects after
   * its caller's abort is always ignored. @default classifyLoad
   */
  readonly classify?: ((outcome: CircuitOutcome) => LoadVerdict) | undefined;
  /** Measures latencies and runs `timeoutMs`. @default systemClock */
  readonly clock?: Clock | undefined;
}

export interface AdaptiveLimiterRunOptions extends PriorityWaitOptions {
  /** @default "normal" */
  readonly criticality?: Criticality | undefined;
  /**
   * Higher goes first, and nobody gains by waiting: under overload somebody has to go without. Any finite number.
   * @default 1 if critical, 0 if normal, -1 if sheddable
   */
  readonly priority?: number | undefined;
}

export type AdaptiveLimiterStats = Readonly<{
  /** The limit of now. */
  concurrency: number;
  maxWaiting: number;
  running: number;
  waiting: number;
  /** Age of the longest wait that goes on, of those whose turn is next; 0 if nobody waits. */
  oldestWaitMs: number;
  /** Moving average over the calls that ended; 0 before the first. */
  latencyMs: number;
  /** Calls that ran and have ended, and those of them that told of overload. */
  completed: number;
  overloads: number;
  /** Calls turned away: because too many waited, by `shed`, and because they had waited longer than `discipline` allows. */
  rejected: number;
  shed: number;
  expired: number;
  /** Calls that got no place, because of their `timeoutMs` or because their signal aborted while they waited. */
  timedOut: number;
  aborted: number;
}>;
