/** Which state of a job may follow which, and by what. Drawn in `docs/jobs-states.md`; nothing else moves a job. */
import type { JobState } from "./job.ts";

export interface Move {
  readonly from: JobState;
  readonly to: JobState;
  readonly by: MoveCause;
}

export type MoveCause =
  /** Its `runAt` has come. */
  | "time"
  | "claim"
  | "complete"
  /** It failed, and attempts are left. */
  | "retry"
  /** It failed for good, or its attempts are used up. */
  | "fail"
  | "snooze"
  | "release"
  /** Its lease lapsed, and a sweep took it back. */
  | "crash"
  /** It was to be put back, but a newer job holds its unique key. */
  | "duplicate"
  | "cancel"
  /** A job with the same key and `onConflict: "replace"` was added. */
  | "replace"
  | "redrive";

export const MOVES: readonly Move[] = [
  { from: "scheduled", to: "ready", by: "time" },
  { from: "scheduled", to: "ready", by: "replace" },
  { from: "scheduled", to: "cancelled", by: "cancel" },
  { from: "ready", to: "scheduled", by: "replace" },
  { from: "ready", to: "running", by: "claim" },
  { from: "ready", to: "cancelled", by: "cancel" },
  { from: "running", to: "succeeded", by: "complete" },
  { from: "running", to: "scheduled", by: "retry" },
  { from: "running", to: "ready", by: "retry" },
  { from: "running", to: "scheduled", by: "snooze" },
  { from: "running", to: "ready", by: "snooze" },
  { from: "running", to: "ready", by: "release" },
  { from: "running", to: "ready", by: "crash" },
  { from: "running", to: "dead", by: "fail" },
  { from: "running", to: "dead", by: "crash" },
  { from: "running", to: "quarantined", by: "crash" },
  { from: "running", to: "cancelled", by: "duplicate" },
  { from: "dead", to: "ready", by: "redrive" },
  { from: "quarantined", to: "ready", by: "redrive" },
  { from: "cancelled", to: "ready", by: "redrive" },
];

/** In the order in which a job goes through them. */
export const STATES: readonly JobState[] = [
  "scheduled",
  "ready",
  "running",
  "succeeded",
  "dead",
  "cancelled",
  "quarantined",
];

export function isMove(from: JobState, to: JobState, by: MoveCause): boolean {
  return MOVES.some((move) => move.from === from && move.to === to && move.by === by);
}
