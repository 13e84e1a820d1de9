/** Attempts end. Whoever holds an old token changes nothing. */
import type { DatabaseSync } from "node:sqlite";
import { parseId, type PreparedSettlement } from "../../validate.ts";
import { DEAD, SUCCEEDED } from "../schema.ts";
import { change, row } from "../sql.ts";
import {
  prepareEnd,
  prepareNote,
  preparePutBack,
  prepareRemove,
  RUNNING_COLUMNS,
  type KeepMs,
  type Running,
} from "./put-back.ts";

/** Tells `onReady` of the queues into which it has put a job back. */
export function prepareSettle(
  db: DatabaseSync,
  keepMs: KeepMs,
  onReady: (queue: string) => void,
): (settlements: readonly PreparedSettlement[], now: number) => boolean[] {
  const complete = keepMs[SUCCEEDED] === 0 ? prepareRemoval(db) : prepareCompletion(db);
  const find = row<Running>(db, `SELECT ${RUNNING_COLUMNS} FROM sluice_jobs WHERE id = ? AND token = ? AND state = 1`);
  const end = prepareEnd(db, keepMs);
  const putBack = preparePutBack(db, keepMs);
  const note = prepareNote(db);
  const refund = change(db, "UPDATE sluice_jobs SET attempts = attempts - 1 WHERE id = ?");

  const settle = (settlement: PreparedSettlement, now: number): boolean => {
    const id = parseId(settlement.id) ?? 0;
    if (settlement.kind === "complete") return complete(id, settlement.token, settlement.result ?? null, now);
    const job = find(id, settlement.token);
    if (job === undefined) return false;
    const wait = (runAt: number, reason: string | null): void => {
      if (putBack(job, runAt, reason, now)) onReady(job.queue);
    };
    switch (settlement.kind) {
      case "fail": {
        const { error, retryInMs } = settlement;
        note(id, now, job.attempts, false, error);
        if (retryInMs === undefined || job.attempts >= job.max_attempts) end(id, DEAD, error, now);
        else wait(now + retryInMs, null);
        return true;
      }
      case "snooze":
        refund(id);
        wait(now + settlement.delayMs, settlement.reason ?? null);
        return true;
      case "release":
        refund(id);
        wait(job.run_at, null);
        return true;
      default:
        return settlement satisfies never;
    }
  };
  return (settlements, now) => settlements.map((settlement) => settle(settlement, now));
}

type Complete = (id: number, token: number, result: string | null, now: number) => boolean;

function prepareCompletion(db: DatabaseSync): Complete {
  const complete = change(
    db,
    `UPDATE sluice_jobs SET state = 4, result = ?, ended_at = ?, reason = NULL, lease_until = NULL
      WHERE id = ? AND token = ? AND state = 1`,
  );
  return (id, token, result, now) => complete(result, now, id, token) === 1;
}

function prepareRemoval(db: DatabaseSync): Complete {
  // Nearly every job that succeeds has failed never, and then one statement that returns nothing does.
  const remove = change(db, "DELETE FROM sluice_jobs WHERE id = ? AND token = ? AND state = 1 AND errors = 0");
  const holds = prepareHolds(db);
  const removeAll = prepareRemove(db);
  return (id, token) => {
    if (remove(id, token) === 1) return true;
    const isHeld = holds(id, token);
    if (isHeld) removeAll(id);
    return isHeld;
  };
}

/** Whether this claim can still settle its job. */
export function prepareHolds(db: DatabaseSync): (id: number, token: number) => boolean {
  const find = row(db, "SELECT 1 FROM sluice_jobs WHERE id = ? AND token = ? AND state = 1");
  return (id, token) => find(id, token) !== undefined;
}
