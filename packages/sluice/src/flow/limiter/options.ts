/** What a `Limiter` is told, and what it tells. */
import type { Clock } from "../../clock/clock.ts";
import type { NameOptions } from "../../internal/names.ts";
import type { WeightedWaitOptions } from "../../policy.ts";

/** What becomes of a call that finds all slots taken and the line full. */
export type LimiterWhenFull = "reject" | "wait" | "drop-newest" | "drop-oldest" | "caller-runs";

/** How many calls may start per unit of time: a `RateLimiter`, or whatever else has these two. */
export interface StartRate {
  /** Takes a start, if there is one now. */
  tryTake(): boolean;
  /** How long until the next can be taken. */
  retryAfterMs(): number;
}

export interface LimiterOptions extends NameOptions {
  /** Calls accepted beyond those that run. An integer >= 0; 0 accepts only what can run at once. @default Infinity */
  readonly capacity?: number | undefined;
  /**
   * What becomes of a call that finds the line full; a function is asked for each, and what it throws is the rejection.
   * - `"reject"`: it gets `QueueFullError`.
   * - `"wait"`: it waits to be accepted, which bounds nothing, but holds back a caller who awaits each call.
   * - `"drop-newest"`: as `"reject"`, for work that may be lost: counted as dropped.
   * - `"drop-oldest"`: of those with the lowest priority, the call itself among them, who has waited longest gets
   *   `QueueFullError`.
   * - `"caller-runs"`: `fn` is called at once and in no slot, so that whoever awaits it is held back by doing the work.
   * @default "reject"
   */
  readonly whenFull?: LimiterWhenFull | ((options: LimiterRunOptions) => LimiterWhenFull) | undefined;
  /** Caps the starts per unit of time beside what runs at a time. Only a start takes from it. @default none */
  readonly rate?: StartRate | undefined;
  /**
   * A wait gains one step of priority each time it has waited for this long, so that a low priority starves nobody. At
   * least 0; `Infinity` for never. @default 1_000
   */
  readonly agingMs?: number | undefined;
  /**
   * How long all slots may be held by calls that have calls of their own waiting for a slot, until the wait that closed
   * the circle gets `SelfWaitError`. At least 0; `Infinity` for never, as where the calls from within are not awaited.
   * Needs async context. @default 500 where the runtime keeps it at no cost to others, as Node 24 does, else Infinity
   */
  readonly stallMs?: number | undefined;
  /** Runs `timeoutMs` and `maxRunMs`, and tells ages. @default systemClock */
  readonly clock?: Clock | undefined;
}

export interface LimiterRunOptions extends WeightedWaitOptions {
  /** What `setPriority` finds it by while it waits; several calls may have the same. */
  readonly id?: unknown;
  /**
   * How long the call may run, from its start: then the caller gets `TimeoutError`, which `fn`'s signal aborts with. At
   * least 0. @default Infinity
   */
  readonly maxRunMs?: number | undefined;
  /**
   * Whether a call that outlives `maxRunMs` keeps its slot until it has really ended, since it is still a load on what
   * is protected, or is abandoned: then more than `concurrency` may run. @default "keep-slot"
   */
  readonly whenOverdue?: "keep-slot" | "release-slot" | undefined;
}

export type LimiterStats = Readonly<{
  concurrency: number;
  capacity: number;
  /** Calls that run, those of `"caller-runs"` included, and the slots they take. */
  running: number;
  taken: number;
  waiting: number;
  /** Age of the longest wait that goes on; 0 if nobody waits. */
  oldestWaitMs: number;
  /** Calls that ran and have ended or been abandoned, whatever came of them. */
  completed: number;
  /** Calls turned away because the limiter was full or closed, those that waited when it closed included. */
  rejected: number;
  /** Calls given up for want of room: those that came, and those that waited. */
  dropped: number;
  /** Calls that waited when `clear` was called, and those that got `SelfWaitError`. */
  cleared: number;
  selfWaits: number;
  /** Calls that got no slot, because of their `timeoutMs` or because their signal aborted while they waited. */
  timedOut: number;
  aborted: number;
  /** Calls so far that outlived their `maxRunMs`; those without a slot that still run. */
  overdue: number;
  abandoned: number;
  paused: boolean;
  closed: boolean;
}>;
