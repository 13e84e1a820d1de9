/** Says what is wrong, by which evidence, and what to do about it. */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { checkInteger, checkMs, checkNumber } from "../internal/check.ts";
import { slowMessages } from "./checks/actors.ts";
import { misfit, starved } from "./checks/classes.ts";
import { deadlocks } from "./checks/deadlock.ts";
import { abandoned, stuckShutdown } from "./checks/endings.ts";
import { fansOut, unseenFailures } from "./checks/failures.ts";
import { heldTooLong, waitingForLost } from "./checks/held.ts";
import { addUp } from "./checks/limits.ts";
import { growsLong, growsOld, nobodyTakes, saturated } from "./checks/lines.ts";
import { staysOpen } from "./checks/open.ts";
import { misordered } from "./checks/orders.ts";
import { stalledParties } from "./checks/parties.ts";
import { multiplies } from "./checks/repeats.ts";
import { tooOld } from "./checks/stale.ts";
import { currentLedger } from "./enable.ts";
import { type Exam, lookAround, lookAtLevel } from "./exam.ts";
import type { Report } from "./report.ts";

export interface DoctorOptions {
  /** What may be held for this long, in milliseconds, is reported after. Needs `enable`. At least 0. @default 30_000 */
  readonly maxHeldMs?: number | undefined;
  /** A wait longer than this at a limit that is used up makes it a bottleneck. At least 0. @default 1_000 */
  readonly maxWaitMs?: number | undefined;
  /** Nothing has moved for this long: then it is no coincidence. At least 0. @default 5_000 */
  readonly stallMs?: number | undefined;
  /** A line without bound may be this long before its growth is reported. An integer >= 0. @default 1_000 */
  readonly maxLine?: number | undefined;
  /** A fan-out within others may make so many calls in all before it is reported. Needs `enable`. An integer >= 1. @default 20 */
  readonly maxWidth?: number | undefined;
  /**
   * Calls that may come of one by retries, hedges and failovers. With `enable`, where the runtime has async context, over
   * all layers that are called within each other; else over all before one dependency, by a guess from their totals. At
   * least 1. @default 3
   */
  readonly maxAmplification?: number | undefined;
  /** A load that others join may take this long. At least 0. @default 30_000 */
  readonly maxFlightMs?: number | undefined;
  /** A snapshot may have the same value for this long. At least 0. @default Infinity */
  readonly maxSnapshotMs?: number | undefined;
  /** A breaker may stay open, or half-open, for this long while calls come. At least 0. @default 60_000 */
  readonly maxOpenMs?: number | undefined;
  /** Must be that of `enable`, where that is on. @default systemClock */
  readonly clock?: Clock | undefined;
}

/** Each gives its reports for what it looks at. In the order of their ids, but for the last, which has several. */
const CHECKS: readonly ((exam: Exam) => readonly Report[])[] = [
  heldTooLong,
  waitingForLost,
  nobodyTakes,
  deadlocks,
  growsOld,
  multiplies,
  saturated,
  starved,
  unseenFailures,
  stalledParties,
  growsLong,
  addUp,
  tooOld,
  staysOpen,
  fansOut,
  abandoned,
  slowMessages,
  misfit,
  stuckShutdown,
  misordered,
];

/**
 * Looks at all that has a name, and with `enable` at what is held and who waits, and reports what is wrong, by id.
 * Some faults show only over time, so ask every few seconds: trends need four looks, and what stands still two.
 */
export function doctor(options: DoctorOptions = {}): Report[] {
  const { clock = systemClock } = options;
  const ledger = currentLedger();
  const exam: Exam = {
    thresholds: {
      maxHeldMs: checkMs("maxHeldMs", options.maxHeldMs ?? 30_000),
      maxWaitMs: checkMs("maxWaitMs", options.maxWaitMs ?? 1_000),
      stallMs: checkMs("stallMs", options.stallMs ?? 5_000),
      maxWidth: checkInteger("maxWidth", options.maxWidth ?? 20, { min: 1, infinity: true }),
      maxAmplification: checkNumber("maxAmplification", options.maxAmplification ?? 3, { min: 1, infinity: true }),
      maxFlightMs: checkMs("maxFlightMs", options.maxFlightMs ?? 30_000),
      maxSnapshotMs: checkMs("maxSnapshotMs", options.maxSnapshotMs ?? Infinity),
      maxOpenMs: checkMs("maxOpenMs", options.maxOpenMs ?? 60_000),
      maxLine: checkInteger("maxLine", options.maxLine ?? 1_000, { min: 0, infinity: true }),
    },
    now: clock.now(),
    looks: lookAround(clock),
    lenders: ledger?.lenders() ?? [],
    unseen: [...(ledger?.unseen.values() ?? [])],
    widest: ledger?.widest,
    nests: ledger?.nesting?.nests.map((nest) => nest.map((level) => lookAtLevel(clock, level))),
  };
  return CHECKS.flatMap((check) => check(exam));
}
