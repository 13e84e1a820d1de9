/** What people do to jobs that don't run: redrive, cancel, and the removal of those that are kept no longer. */
import type { DatabaseSync } from "node:sqlite";
import { CANCELLED as CANCELLED_REASON } from "../../reasons.ts";
import type { JobFilter, Redriven } from "../../store.ts";
import { CANCELLED, DEAD, SUCCEEDED } from "../schema.ts";
import { change } from "../sql.ts";
import { prepareSelect } from "./filter.ts";
import { prepareHolder } from "./key.ts";
import { prepareEnd, type KeepMs } from "./put-back.ts";

interface Ended {
  readonly id: number;
  readonly queue: string;
  readonly unique_key: string | null;
}

export function prepareRedrive(
  db: DatabaseSync,
  onReady: (queue: string) => void,
): (filter: JobFilter, now: number) => Redriven {
  const select = prepareSelect<Ended>(db, "id, queue, unique_key", "state IN (2, 3, 5)");
  const findHolder = prepareHolder(db);
  const restart = change(
    db,
    `UPDATE sluice_jobs SET state = 0, run_at = ?, attempts = 0, crashes = 0, lost_key = 0, ended_at = NULL,
      reason = NULL WHERE id = ?`,
  );
  return (filter, now) => {
    let [redriven, duplicates] = [0, 0];
    for (const { id, queue, unique_key: key } of select(filter, now)) {
      if (key !== null && findHolder(queue, key) !== undefined) {
        duplicates += 1;
        continue;
      }
      restart(now, id);
      onReady(queue);
      redriven += 1;
    }
    return { redriven, duplicates };
  };
}

export function prepareCancel(db: DatabaseSync, keepMs: KeepMs): (filter: JobFilter, now: number) => number {
  const select = prepareSelect<{ readonly id: number }>(db, "id", "state = 0");
  const end = prepareEnd(db, keepMs);
  return (filter, now) => {
    const cancelled = select(filter, now);
    for (const { id } of cancelled) end(id, CANCELLED, CANCELLED_REASON, now);
    return cancelled.length;
  };
}

export function preparePrune(db: DatabaseSync, keepMs: KeepMs): (now: number) => number {
  const passed = prepareRemoval(db, "state >= 4 AND ended_at <= ?");
  const failed = prepareRemoval(db, "state IN (2, 3) AND ended_at <= ?");
  return (now) => passed(now - keepMs[SUCCEEDED]) + failed(now - keepMs[DEAD]);
}

function prepareRemoval(db: DatabaseSync, condition: string): (endedUntil: number) => number {
  const removeErrors = change(
    db,
    `DELETE FROM sluice_job_errors WHERE job_id IN (SELECT id FROM sluice_jobs WHERE ${condition} AND errors > 0)`,
  );
  const remove = change(db, `DELETE FROM sluice_jobs WHERE ${condition}`);
  return (endedUntil) => {
    if (endedUntil === -Infinity) return 0;
    removeErrors(endedUntil);
    return remove(endedUntil);
  };
}
