/** What each check of the doctor is given. */
import type { Clock } from "../clock/clock.ts";
import { namedEntries, type Stats } from "../internal/names.ts";
import { remember, type Trail } from "./history.ts";
import type { FanOut, Lender, Unseen } from "./ledger.ts";
import { type Level, REPEATED } from "./nesting.ts";
import { type Readings, readingsOf } from "./readings.ts";
import type { Subject } from "./subject.ts";

/** Something with a name, at the time of the exam. */
export interface Look {
  readonly target: object;
  readonly subject: Subject;
  readonly dependency: string | undefined;
  readonly stats: Stats;
  readonly readings: Readings;
  readonly trail: Trail;
}

/** A layer that repeats calls, by itself or among those around and within it. */
export type LayerLook = Pick<Look, "subject" | "dependency" | "stats" | "trail">;

export interface Thresholds {
  readonly maxHeldMs: number;
  readonly maxWaitMs: number;
  readonly stallMs: number;
  readonly maxLine: number;
  readonly maxWidth: number;
  readonly maxAmplification: number;
  readonly maxFlightMs: number;
  readonly maxSnapshotMs: number;
  readonly maxOpenMs: number;
}

export interface Exam {
  readonly looks: readonly Look[];
  /** Empty unless `enable` is on, as those that follow. */
  readonly lenders: readonly Lender[];
  readonly unseen: readonly Unseen[];
  readonly widest: FanOut | undefined;
  /** Each the outermost first. Undefined unless `enable` is on, in a runtime with async context. */
  readonly nests: readonly (readonly LayerLook[])[] | undefined;
  readonly now: number;
  readonly thresholds: Thresholds;
}

/** Looks at everything that has a name. What fails to tell its stats is left out: `named` shows the error. */
export function lookAround(clock: Clock): Look[] {
  const at = clock.now();
  const looks: Look[] = [];
  for (const { kind, name, dependency, target } of namedEntries()) {
    const observed = target.deref();
    if (observed === undefined) continue;
    try {
      const stats = observed.stats();
      const readings = readingsOf(stats);
      const point = { at, depth: readings.depth ?? 0, ageMs: readings.ageMs ?? 0, stats };
      const trail = remember(clock, observed, point, readings.done);
      looks.push({ target: observed, subject: { kind, name }, dependency, stats, readings, trail });
    } catch {
      // as said above
    }
  }
  return looks;
}

/** Looks at a layer of a nest, with stats as the layer tells them of itself. */
export function lookAtLevel(clock: Clock, level: Level): LayerLook {
  const { layer, calls, attempts } = level;
  const { kind, name, dependency } = layer;
  const stats = { attempts, [String(REPEATED.get(kind))]: attempts - calls };
  const trail = remember(clock, level, { at: clock.now(), depth: 0, ageMs: 0, stats }, undefined);
  return { subject: { kind, name }, dependency, stats, trail };
}
