/** The two ways in which a running job goes on: it ends, or it waits in line again. */
import type { DatabaseSync } from "node:sqlite";
import { DUPLICATE } from "../../reasons.ts";
import { CANCELLED, type EndState } from "../schema.ts";
import { change, row } from "../sql.ts";
import { prepareHolder } from "./key.ts";

/** How long a job stays in each of the states in which it can end; 0 removes it at once. */
export type KeepMs = Readonly<Record<EndState, number>>;

export interface Running {
  readonly id: number;
  readonly queue: string;
  readonly attempts: number;
  readonly max_attempts: number;
  readonly crashes: number;
  readonly run_at: number;
  readonly lost_key: number;
  readonly unique_key: string | null;
}

/** What of a running job the next step depends on. */
export const RUNNING_COLUMNS = "id, queue, attempts, max_attempts, crashes, run_at, lost_key, unique_key";

export function prepareEnd(
  db: DatabaseSync,
  keepMs: KeepMs,
): (id: number, state: EndState, reason: string, now: number) => void {
  const end = change(db, "UPDATE sluice_jobs SET state = ?, reason = ?, ended_at = ?, lease_until = NULL WHERE id = ?");
  const remove = prepareRemove(db);
  return (id, state, reason, now) => {
    if (keepMs[state] === 0) remove(id);
    else end(state, reason, now, id);
  };
}

export function prepareRemove(db: DatabaseSync): (id: number) => void {
  const remove = row<{ readonly errors: number }>(db, "DELETE FROM sluice_jobs WHERE id = ? RETURNING errors");
  const removeErrors = change(db, "DELETE FROM sluice_job_errors WHERE job_id = ?");
  return (id) => {
    if ((remove(id)?.errors ?? 0) > 0) removeErrors(id);
  };
}

/** False if it was closed instead, because a newer job holds its key. */
export function preparePutBack(
  db: DatabaseSync,
  keepMs: KeepMs,
): (job: Running, runAt: number, reason: string | null, now: number) => boolean {
  const findHolder = prepareHolder(db);
  const end = prepareEnd(db, keepMs);
  const wait = change(
    db,
    "UPDATE sluice_jobs SET state = 0, run_at = ?, reason = ?, lost_key = 0, lease_until = NULL WHERE id = ?",
  );

  return ({ id, queue, lost_key: lostKey, unique_key: key }, runAt, reason, now) => {
    if (lostKey === 1 && key !== null && findHolder(queue, key) !== undefined) {
      end(id, CANCELLED, DUPLICATE, now);
      return false;
    }
    wait(runAt, reason, id);
    return true;
  };
}

/** Keeps an error, and counts it in the job's row. */
export function prepareNote(
  db: DatabaseSync,
): (id: number, at: number, attempt: number, isCrash: boolean, message: string) => void {
  const count = row<{ readonly errors: number }>(
    db,
    "UPDATE sluice_jobs SET errors = errors + 1 WHERE id = ? RETURNING errors",
  );
  const note = change(
    db,
    "INSERT INTO sluice_job_errors (job_id, number, at, attempt, crash, message) VALUES (?, ?, ?, ?, ?, ?)",
  );
  return (id, at, attempt, isCrash, message) => {
    note(id, count(id)?.errors ?? 0, at, attempt, isCrash ? 1 : 0, message);
  };
}
