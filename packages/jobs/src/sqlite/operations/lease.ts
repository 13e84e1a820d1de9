/** Leases are kept alive, and lapsed ones taken back. */
import type { DatabaseSync } from "node:sqlite";
import type { Claim } from "../../job.ts";
import { CRASHED, poison } from "../../reasons.ts";
import type { Swept } from "../../store.ts";
import { parseId } from "../../validate.ts";
import { DEAD, QUARANTINED } from "../schema.ts";
import { change, row, rows } from "../sql.ts";
import { prepareEnd, prepareNote, preparePutBack, RUNNING_COLUMNS, type KeepMs, type Running } from "./put-back.ts";

export function prepareHeartbeat(
  db: DatabaseSync,
): (claims: readonly Claim[], leaseMs: number, now: number) => boolean[] {
  const beat = change(
    db,
    "UPDATE sluice_jobs SET lease_until = ? WHERE id = ? AND token = ? AND state = 1 AND lost_key = 0",
  );
  return (claims, leaseMs, now) => claims.map(({ id, token }) => beat(now + leaseMs, parseId(id) ?? 0, token) === 1);
}

/** Of one queue or all. Tells `onReady` of the queues into which it has put a job back. */
export function prepareSweep(
  db: DatabaseSync,
  keepMs: KeepMs,
  onReady: (queue: string) => void,
): (queue: string | undefined, maxCrashes: number, now: number) => Swept {
  const nextQueue = row<{ readonly queue: string | null }>(
    db,
    "SELECT min(queue) AS queue FROM sluice_jobs WHERE state = 1 AND queue > ?",
  );
  // Newest first: of several that lost one key, it is the newest that gets it back.
  const findLapsed = rows<Running>(
    db,
    `SELECT ${RUNNING_COLUMNS} FROM sluice_jobs WHERE state = 1 AND queue = ? AND lease_until <= ? ORDER BY id DESC`,
  );
  const end = prepareEnd(db, keepMs);
  const putBack = preparePutBack(db, keepMs);
  const note = prepareNote(db);
  const countCrash = change(db, "UPDATE sluice_jobs SET crashes = crashes + 1 WHERE id = ?");

  const takeBack = (job: Running, maxCrashes: number, now: number): keyof Swept => {
    const { id, queue, attempts, run_at: runAt } = job;
    const crashes = job.crashes + 1;
    note(id, now, attempts, true, CRASHED);
    countCrash(id);
    if (crashes >= maxCrashes) {
      end(id, QUARANTINED, poison(crashes), now);
      return "quarantined";
    }
    if (attempts >= job.max_attempts) {
      end(id, DEAD, CRASHED, now);
      return "dead";
    }
    if (!putBack(job, runAt, null, now)) return "duplicates";
    onReady(queue);
    return "ready";
  };

  return (queue, maxCrashes, now) => {
    const swept = { ready: 0, dead: 0, quarantined: 0, duplicates: 0 };
    for (
      let next = queue ?? nextQueue("")?.queue;
      next != null;
      next = queue === undefined ? nextQueue(next)?.queue : null
    ) {
      for (const job of findLapsed(next, now)) swept[takeBack(job, maxCrashes, now)] += 1;
    }
    return swept;
  };
}
