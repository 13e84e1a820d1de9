/** What people do to jobs that don't run: redrive, cancel, and the removal of those that are kept no longer. */
import type { DatabaseSync } from "node:sqlite";
import { CANCELLED as CANCELLED_REASON } from "../../reasons.ts";
import type { JobFilter, Redriven } from "../../store.ts";
import { CANCELLED, DEAD, SUCCEEDED } from "../schema.ts";
import { change, rows } from "../sql.ts";
import { prepareSelect } from "./filter.ts";
import { prepareHolder } from "./key.ts";
import { prepareEnd, prepareRemove, type KeepMs } from "./put-back.ts";

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

/** At most `max` of them. */
export function preparePrune(db: DatabaseSync, keepMs: KeepMs): (max: number, now: number) => number {
  const remove = prepareRemove(db);
  const passed = rows<{ readonly id: number }>(
    db,
    "SELECT id FROM sluice_jobs WHERE state >= 4 AND ended_at <= ? ORDER BY ended_at LIMIT ?",
  );
  const failed = rows<{ readonly id: number }>(
    db,
    "SELECT id FROM sluice_jobs WHERE state IN (2, 3) AND ended_at <= ? LIMIT ?",
  );
  const isDeadKept = keepMs[DEAD] === Infinity; // then the walk past all of them is spared
  return (max, now) => {
    const ended = passed(now - keepMs[SUCCEEDED], max);
    if (ended.length < max && !isDeadKept) ended.push(...failed(now - keepMs[DEAD], max - ended.length));
    for (const { id } of ended) remove(id);
    return ended.length;
  };
}
