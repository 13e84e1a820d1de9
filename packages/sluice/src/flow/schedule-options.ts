import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { checkFunction, checkInteger, checkMs, checkOneOf } from "../internal/check.ts";
import type { NameOptions } from "../internal/names.ts";

/** When something is to run. Instants are milliseconds since the Unix epoch on the wall clock. */
export type ScheduleTiming = OnceTiming | RateTiming | DelayTiming | Calendar;

export interface OnceTiming {
  /** Once, this long from now. At least 0. */
  readonly afterMs: number;
}

export interface RateTiming {
  /** From due time to due time, however long a run takes and whatever the wall clock does. At least 1. */
  readonly everyMs: number;
  /** How long the first is off. At least 0. @default everyMs */
  readonly firstAfterMs?: number | undefined;
}

export interface DelayTiming {
  /** From the end of a run to the start of the next: two never overlap. At least 0. */
  readonly delayMs: number;
  /** How long the first is off. At least 0. @default delayMs */
  readonly firstAfterMs?: number | undefined;
}

/**
 * Occurrences on the wall clock. Time zones, summer time and the lengths of months are the business of whoever computes
 * them, such as croner: `{ next: (afterMs) => cron.nextRun(new Date(afterMs))?.getTime() }`.
 */
export interface Calendar {
  /** The first occurrence after `afterMs`, not at it; undefined if there is none. */
  next(afterMs: number): number | undefined;
}

export interface ScheduleContext {
  /** Aborts when the schedule is aborted. It outlives the run: take back the listeners you add. */
  readonly signal: AbortSignal;
  /** For which instant this run is; it may have started later. */
  readonly dueAt: number;
  /** Earlier occurrences it stands for, which have no run of their own. Of a calendar counted up to 1,000. */
  readonly missed: number;
}

export type ScheduledTask = (context: ScheduleContext) => unknown;

export interface ScheduleOptions extends NameOptions {
  /**
   * When a run is due and another still goes on: it is left out (`skip`), starts when that one ends, at most one of them
   * (`queue`), or starts beside it, at most `maxRunning` (`allow`). @default "skip"
   */
  readonly overlap?: "skip" | "queue" | "allow" | undefined;
  /** With `overlap: "allow"`; one more is left out. An integer >= 1. @default 10 */
  readonly maxRunning?: number | undefined;
  /**
   * When occurrences passed while nothing could run: the loop was blocked, the machine asleep, the schedule paused. The
   * last of them runs if it is late by no more than `graceMs` (`skip`) or however late it is (`once`), or all within
   * `windowMs` run, one after the other (`all`). Once and with a fixed delay, a run is never missed. @default "skip"
   */
  readonly missed?: "skip" | "once" | "all" | undefined;
  /**
   * Up to here a run is late, and not missed. If the wall clock is set back by more, a calendar starts anew from there,
   * and what ran may run again; by less, nothing runs twice. At least 0. @default 60_000
   */
  readonly graceMs?: number | undefined;
  /** With `missed: "all"`, which needs it: what is longer ago is missed for good. Finite, at least `graceMs`. */
  readonly windowMs?: number | undefined;
  /** Of a calendar: when it was looked at last, as in an earlier process; what has passed since was missed. @default now */
  readonly sinceAt?: number | undefined;
  /** Told of each run that fails; the schedule goes on. @default the error surfaces as an unhandled rejection */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** Aborts the schedule. */
  readonly signal?: AbortSignal | undefined;
  /** The schedule alone doesn't keep the process alive. @default false */
  readonly background?: boolean | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

export type ScheduleStats = Readonly<{
  /** Runs that have started so far, that go on, and that wait for others to end. */
  started: number;
  running: number;
  pending: number;
  failed: number;
  /** Occurrences without a run: because of another run, and because nothing could run at their time. */
  skipped: number;
  missed: number;
  paused: boolean;
  ended: boolean;
}>;

type Resolved = "overlap" | "maxRunning" | "missed" | "graceMs" | "windowMs" | "background" | "clock";

export type ScheduleSettings = Omit<ScheduleOptions, Resolved> & {
  readonly [K in Resolved]: NonNullable<ScheduleOptions[K]>;
};

/** With defaults. Throws for what is no such thing. */
export function checkScheduleOptions(options: ScheduleOptions): ScheduleSettings {
  const missed = checkOneOf("missed", options.missed ?? "skip", ["skip", "once", "all"]);
  const graceMs = checkMs("graceMs", options.graceMs ?? 60_000);
  if (options.sinceAt !== undefined && !Number.isFinite(options.sinceAt))
    throw new RangeError(`sinceAt must be finite, got ${options.sinceAt}`);
  if (options.onError !== undefined) checkFunction("onError", options.onError);
  return {
    ...options,
    overlap: checkOneOf("overlap", options.overlap ?? "skip", ["skip", "queue", "allow"]),
    maxRunning: checkInteger("maxRunning", options.maxRunning ?? 10, { min: 1 }),
    missed,
    graceMs,
    windowMs: missed === "all" ? checkMs("windowMs", options.windowMs as number, { min: graceMs }) : 0, // with no default
    background: options.background === true,
    clock: options.clock ?? systemClock,
  };
}
