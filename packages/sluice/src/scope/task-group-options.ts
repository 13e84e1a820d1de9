/** What a group is made with, hands on, and tells. */
import type { Clock } from "../clock/clock.ts";
import type { NameOptions } from "../internal/names.ts";
import type { RunContext } from "../policy.ts";
import type { Joiner } from "./joiner.ts";

export interface TaskGroupOptions<T = unknown, R = void> extends NameOptions {
  /** What the end of a child means for the others. A new one for each group. @default failFast() */
  readonly joiner?: Joiner<T, R> | undefined;
  /**
   * Children that run at a time; the others wait for their start, also for one that awaits them. An integer >= 1.
   * @default Infinity
   */
  readonly concurrency?: number | undefined;
  /** How long all of it may take from now, at least 0: then the group is cancelled with `TimeoutError`. @default Infinity */
  readonly timeoutMs?: number | undefined;
  /** Whose abort cancels the group, with the same reason: that of the parent group's child, or a `Deadline`'s. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Hears of failures that come when the group has been cancelled or has what it wants, and of those that `join` could
   * not tell because of an abort; `stats()` counts them.
   */
  readonly onLateError?: ((error: unknown) => void) | undefined;
  /** Runs `timeoutMs` and tells ages. @default systemClock */
  readonly clock?: Clock | undefined;
}

export interface TaskGroupContext extends RunContext {
  /** Aborts when the group is cancelled, and with the child's own signal. */
  readonly signal: AbortSignal;
}

export interface DetachOptions {
  /** Hears of the failure, since nobody waits for detached work. What it throws is the rejection of `detach`. */
  readonly onError: (error: unknown) => void;
  /** Handed on to the work. */
  readonly signal?: AbortSignal | undefined;
}

export type TaskGroupStats = Readonly<{
  concurrency: number;
  /** Children that were called and have not settled, and how long ago the oldest of them was called. */
  running: number;
  oldestRunMs: number;
  waiting: number;
  oldestWaitMs: number;
  /** How the children that have ended did so. */
  fulfilled: number;
  failed: number;
  cancelled: number;
  /** Failures that are for `onLateError` to hear. */
  lateErrors: number;
  /** Detached work that goes on. */
  detached: number;
  /** Calls that were not started, because of their `timeoutMs` or because their signal aborted while they waited. */
  timedOut: number;
  aborted: number;
  state: "open" | "cancelled" | "ended";
}>;
