/** Thresholds that are watched: each alarm is raised once, and again only after it was cleared. */
import type { Clock, Timer, TimerTask } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import {
  checkInteger,
  checkMs,
  checkNumber,
  checkOneOf,
  checkShare,
  checkString,
  wrongType,
} from "../internal/check.ts";
import { dispose } from "../internal/dispose.ts";
import { tellOf } from "./events.ts";
import { ages, heldTimes, type Measured, RejectedShares } from "./measure.ts";
import type { Subject } from "./subject.ts";

const DEFAULT_CLEAR_SHARE = 0.8;

export interface AlarmRule {
  /**
   * `age`: of the oldest in line, in milliseconds · `held`: of what was taken first and not given back, in milliseconds,
   * which needs `enable` · `rejected-share`: of the calls since the last look those that were turned away, 0 to 1.
   */
  readonly measure: "age" | "held" | "rejected-share";
  /** Raised when the measure is above this. At least 0; a share is at most 1. */
  readonly above: number;
  /** Cleared when the measure is no longer above this: some way below, or it flutters. At least 0. @default 0.8 × above */
  readonly clearAt?: number | undefined;
  /** Only what has this name. @default whatever its name */
  readonly name?: string | undefined;
  /** Only what protects this dependency. @default whatever it protects */
  readonly dependency?: string | undefined;
}

export interface AlarmOptions {
  /** Time between two looks. At least 1. @default 1_000 */
  readonly everyMs?: number | undefined;
  /** Fewer calls than this between two looks have no share, and change nothing. An integer >= 1. @default 10 */
  readonly minCalls?: number | undefined;
  /** Says when to look, and tells `held`: must be that of `enable`, where that is on. @default systemClock */
  readonly clock?: Clock | undefined;
}

export interface Alarm {
  readonly rule: AlarmRule;
  readonly subject: Subject;
  /** At the last look. */
  readonly value: number;
}

/** Disposing of it is the same as `stop`. */
export interface AlarmWatch extends Disposable {
  /** Those that are raised now, by rule, in the order of their raising. */
  readonly raised: readonly Alarm[];
  /** Looks now, too. */
  look(): void;
  /** Looks no more. Does nothing the second time. */
  stop(): void;
}

/**
 * Looks at all that has a name every `everyMs`, which doesn't keep the process alive. What happens is told as the events
 * `raised` and `cleared`, whose detail is the `Alarm`.
 */
export function watchAlarms(rules: readonly AlarmRule[], options: AlarmOptions = {}): AlarmWatch {
  return new Alarms(rules, options);
}

type CheckedRule = AlarmRule & { readonly clearAt: number };

class Alarms implements AlarmWatch, TimerTask {
  // I1  an alarm is in #raised from the look that finds its measure above `above` to the first that finds it no longer
  //     above `clearAt`, or its thing gone; only at these two it is told
  readonly #clock: Clock;
  readonly #everyMs: number;
  readonly #shares: RejectedShares;
  readonly #raised: ReadonlyMap<CheckedRule, Map<object, Alarm>>;
  #timer: Timer | undefined;
  #isOver = false;

  constructor(rules: readonly AlarmRule[], { everyMs = 1_000, minCalls = 10, clock = systemClock }: AlarmOptions) {
    if (!Array.isArray(rules)) throw wrongType("rules", rules, "a list");
    this.#raised = new Map(rules.map((rule) => [checkRule(rule), new Map()]));
    this.#everyMs = checkMs("everyMs", everyMs, { min: 1 });
    this.#shares = new RejectedShares(checkInteger("minCalls", minCalls, { min: 1 }));
    this.#clock = clock;
    this.onTimer();
  }

  get raised(): Alarm[] {
    return Array.from(this.#raised.values(), (alarms) => Array.from(alarms.values())).flat();
  }

  look(): void {
    const measured = { age: ages(), held: heldTimes(this.#clock.now()), "rejected-share": this.#shares.measure() };
    for (const [rule, raised] of this.#raised) {
      const concerned = measured[rule.measure].filter((each) => isMeant(rule, each));
      for (const each of concerned) compare(rule, raised, each);
      const keys = new Set(concerned.map(({ key }) => key));
      for (const [key, alarm] of raised) if (!keys.has(key)) clear(raised, key, alarm);
    }
  }

  stop(): void {
    this.#isOver = true;
    this.#timer?.cancel();
  }

  [dispose](): void {
    this.stop();
  }

  onTimer(): void {
    if (this.#isOver) return;
    this.#timer = this.#clock.setTimer(this.#everyMs, this, { background: true });
    this.look();
  }
}

function checkRule(rule: AlarmRule): CheckedRule {
  const measure = checkOneOf("measure", rule.measure, ["age", "held", "rejected-share"]);
  const above =
    measure === "rejected-share" ? checkShare("above", rule.above) : checkMs("above", rule.above, { min: 0 });
  const clearAt = checkNumber("clearAt", rule.clearAt ?? above * DEFAULT_CLEAR_SHARE, { min: 0 });
  if (clearAt > above) throw new RangeError(`clearAt must be <= above, which is ${above}, got ${clearAt}`);
  if (rule.name !== undefined) checkString("name", rule.name);
  if (rule.dependency !== undefined) checkString("dependency", rule.dependency);
  return { ...rule, clearAt };
}

function isMeant({ name, dependency }: AlarmRule, measured: Measured): boolean {
  return (
    (name === undefined || name === measured.subject.name) &&
    (dependency === undefined || dependency === measured.dependency)
  );
}

function compare(rule: CheckedRule, raised: Map<object, Alarm>, { key, subject, value }: Measured): void {
  if (value === undefined) return;
  const alarm = { rule, subject, value };
  const isRaised = raised.has(key);
  if (isRaised && value <= rule.clearAt) return clear(raised, key, alarm);
  if (!isRaised && value <= rule.above) return;
  raised.set(key, alarm);
  if (!isRaised) tellOf("raised", subject, alarm);
}

function clear(raised: Map<object, Alarm>, key: object, alarm: Alarm): void {
  raised.delete(key);
  tellOf("cleared", alarm.subject, alarm);
}
