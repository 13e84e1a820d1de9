/** When a schedule's runs are due: on the monotonic clock for intervals, on the wall clock for calendars. */
import { checkMs } from "../internal/check.ts";
import type { Calendar, ScheduleSettings, ScheduleTiming } from "./schedule-options.ts";

/** One run that is to be. */
export interface Occurrence {
  readonly dueAt: number;
  readonly missed: number;
}

export interface Due {
  /** The oldest first. */
  readonly runs: readonly Occurrence[];
  /** How many have passed and get none. */
  readonly missed: number;
}

export interface Timetable {
  /** Undefined if no run comes any more, or none before the one that goes on has ended. */
  readonly nextAt: number | undefined;
  /** How long it isn't worth looking. */
  readonly delayMs: number;
  /** Whether the next depends on the end of the last. */
  readonly isSerial: boolean;
  /** Takes what has fallen due. Throws what a calendar throws, and for one that goes back or stands still. */
  takeDue(): Due;
  /** Of one that is serial: a run has ended. */
  onEnd(): void;
}

/** The policy on what was missed. */
type Policy = Pick<ScheduleSettings, "missed" | "graceMs" | "windowMs" | "clock" | "sinceAt">;

const NOTHING: Due = { runs: [], missed: 0 };
/** No more are counted one by one, since a calendar may have millions. */
const MAX_COUNTED = 1_000;
/** So often the wall clock is looked at, which may jump. */
const MAX_SLEEP_MS = 60_000;

export function timetable(timing: ScheduleTiming, policy: Policy): Timetable {
  if ("afterMs" in timing) return new Interval(Infinity, checkFinite("afterMs", timing.afterMs, 0), false, policy);
  if ("everyMs" in timing) {
    const everyMs = checkFinite("everyMs", timing.everyMs, 1);
    return new Interval(everyMs, checkFinite("firstAfterMs", timing.firstAfterMs ?? everyMs, 0), false, policy);
  }
  if ("delayMs" in timing) {
    const delayMs = checkFinite("delayMs", timing.delayMs, 0);
    return new Interval(delayMs, checkFinite("firstAfterMs", timing.firstAfterMs ?? delayMs, 0), true, policy);
  }
  if (typeof timing.next === "function") return new CalendarTimetable(timing, policy);
  throw new TypeError("timing must have afterMs, everyMs, delayMs or next");
}

function checkFinite(name: string, value: number, min: number): number {
  return checkMs(name, value, { min });
}

class Interval implements Timetable {
  readonly isSerial: boolean;
  readonly #periodMs: number;
  readonly #policy: Policy;
  /** On the monotonic clock. */
  #dueAt: number;

  constructor(periodMs: number, firstAfterMs: number, isSerial: boolean, policy: Policy) {
    this.#periodMs = periodMs;
    this.isSerial = isSerial;
    // What happens once, or after the last, is never superseded by a later one.
    this.#policy = isSerial || periodMs === Infinity ? { ...policy, missed: "once" } : policy;
    this.#dueAt = policy.clock.now() + firstAfterMs;
  }

  get nextAt(): number | undefined {
    return this.#dueAt === Infinity ? undefined : this.#toWall(this.#dueAt);
  }

  get delayMs(): number {
    return Math.max(0, this.#dueAt - this.#policy.clock.now());
  }

  takeDue(): Due {
    const { missed, graceMs, windowMs, clock } = this.#policy;
    const lateMs = clock.now() - this.#dueAt;
    if (lateMs < 0) return NOTHING;
    const periodMs = this.isSerial ? Infinity : this.#periodMs;
    const earlier = Math.floor(lateMs / periodMs);
    const lastAt = earlier === 0 ? this.#dueAt : this.#dueAt + earlier * periodMs;
    this.#dueAt = lastAt + periodMs;
    if (missed === "all") {
      const inTime = Math.floor((windowMs - (clock.now() - lastAt)) / periodMs) + 1;
      const count = Math.max(0, Math.min(earlier + 1, inTime));
      const lost = earlier + 1 - count;
      const runs = Array.from({ length: count }, (_, index) => ({
        dueAt: this.#toWall(lastAt - (count - 1 - index) * periodMs),
        missed: index === 0 ? lost : 0,
      }));
      return { runs, missed: lost };
    }
    if (missed === "skip" && clock.now() - lastAt > graceMs) return { runs: [], missed: earlier + 1 };
    return { runs: [{ dueAt: this.#toWall(lastAt), missed: earlier }], missed: earlier };
  }

  onEnd(): void {
    this.#dueAt = this.#policy.clock.now() + this.#periodMs;
  }

  #toWall(at: number): number {
    const { clock } = this.#policy;
    return clock.wallNow() - (clock.now() - at);
  }
}

class CalendarTimetable implements Timetable {
  readonly isSerial = false;
  nextAt: number | undefined;
  readonly #calendar: Calendar;
  readonly #policy: Policy;
  /** What both clocks said when they were compared last. */
  #seen: { readonly now: number; readonly wallNow: number };

  constructor(calendar: Calendar, policy: Policy) {
    this.#calendar = calendar;
    this.#policy = policy;
    this.#seen = this.#read();
    this.nextAt = this.#next(policy.sinceAt ?? this.#seen.wallNow);
  }

  get delayMs(): number {
    const leftMs = (this.nextAt ?? Infinity) - this.#policy.clock.wallNow();
    return Math.min(Math.max(0, leftMs), MAX_SLEEP_MS);
  }

  takeDue(): Due {
    const { missed, graceMs, windowMs } = this.#policy;
    const before = this.#seen;
    const { now, wallNow } = (this.#seen = this.#read());
    const setBackMs = now - before.now - (wallNow - before.wallNow);
    if (setBackMs > graceMs) this.nextAt = this.#next(wallNow);
    if (this.nextAt === undefined || wallNow < this.nextAt) return NOTHING;
    if (missed === "all") return this.#takeAll(this.nextAt, wallNow, wallNow - windowMs);
    const { at, count, nextAt } = this.#last(this.nextAt, wallNow);
    this.nextAt = nextAt;
    if (missed === "skip" && wallNow - at > graceMs) return { runs: [], missed: count + 1 };
    return { runs: [{ dueAt: at, missed: count }], missed: count };
  }

  onEnd(): void {}

  #read(): { readonly now: number; readonly wallNow: number } {
    const { clock } = this.#policy;
    return { now: clock.now(), wallNow: clock.wallNow() };
  }

  #takeAll(firstAt: number, now: number, since: number): Due {
    let missed = 0;
    let at: number | undefined = firstAt;
    while (at !== undefined && at < since) {
      missed += 1;
      at = this.#next(missed < MAX_COUNTED ? at : since - 1);
    }
    const runs: Occurrence[] = [];
    for (; at !== undefined && at <= now; at = this.#next(at))
      runs.push({ dueAt: at, missed: runs.length === 0 ? missed : 0 });
    this.nextAt = at;
    return { runs, missed };
  }

  /** The last by `now`, how many there were before it, and the next. */
  #last(firstAt: number, now: number): { readonly at: number; readonly count: number; nextAt: number | undefined } {
    let at = firstAt;
    for (let count = 0; count < MAX_COUNTED; count += 1) {
      const nextAt = this.#next(at);
      if (nextAt === undefined || nextAt > now) return { at, count, nextAt };
      at = nextAt;
    }
    // By halves: `at` is one of them, and after `end` comes none.
    for (let end = now; end - at > 1;) {
      const middle = at + (end - at) / 2;
      const nextAt = this.#next(middle);
      if (nextAt === undefined || nextAt > now) end = middle;
      else at = nextAt;
    }
    return { at, count: MAX_COUNTED, nextAt: this.#next(at) };
  }

  #next(after: number): number | undefined {
    const next = this.#calendar.next(after) ?? undefined;
    if (next === undefined || next > after) return next === Infinity ? undefined : next;
    throw new RangeError(`next(${after}) must be a later instant or undefined, got ${next}`);
  }
}
