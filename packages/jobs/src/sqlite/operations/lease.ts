/** Leases are kept alive, and lapsed ones taken back. */
import type { DatabaseSync } from "node:sqlite";
import type { Claim, DeadJob } from "../../job.ts";
import { CRASHED, poison } from "../../reasons.ts";
import type { Swept } from "../../store.ts";
import { parseId } from "../../validate.ts";
import { DEAD, QUARANTINED } from "../schema.ts";
import { change, row, rows } from "../sql.ts";
import { prepareEnd, prepareNote, preparePutBack, RUNNING_COLUMNS, type KeepMs, type Running } from "./put-back.ts";

/** A `DeadJob` whose payload is still JSON. */
export type DeadRow = Omit<DeadJob, "payload"> & { readonly payload: string };
export type SweptRows = Omit<Swept, "ended"> & { readonly ended: readonly DeadRow[] };

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
): (queue: string | undefined, maxCrashes: number, now: number) => SweptRows {
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

  const payloadOf = row<{ readonly payload: string }>(db, "SELECT payload FROM sluice_jobs WHERE id = ?");

  const bury = ({ id, queue, attempts }: Running, state: DeadJob["state"], reason: string, now: number): DeadRow => {
    const payload = payloadOf(id)?.payload ?? "null";
    end(id, state === "dead" ? DEAD : QUARANTINED, reason, now);
    return { id: String(id), queue, payload, state, attempts, reason };
  };

  const takeBack = (job: Running, maxCrashes: number, now: number): DeadRow | "ready" | "duplicates" => {
    const { id, queue, attempts, run_at: runAt } = job;
    const crashes = job.crashes + 1;
    note(id, now, attempts, true, CRASHED);
    countCrash(id);
    if (crashes >= maxCrashes) return bury(job, "quarantined", poison(crashes), now);
    if (attempts >= job.max_attempts) return bury(job, "dead", CRASHED, now);
    if (!putBack(job, runAt, null, now)) return "duplicates";
    onReady(queue);
    return "ready";
  };

  return (queue, maxCrashes, now) => {
    const swept = { ready: 0, dead: 0, quarantined: 0, duplicates: 0, ended: [] as DeadRow[] };
    for (
      let next = queue ?? nextQueue("")?.queue;
      next != null;
      next = queue === undefined ? nextQueue(next)?.queue : null
    ) {
      for (const job of findLapsed(next, now)) {
        const became = takeBack(job, maxCrashes, now);
        if (typeof became === "string") swept[became] += 1;
        else {
          swept[became.state] += 1;
          swept.ended.push(became);
        }
      }
    }
    return swept;
  };
}
