/** What can be asked about jobs. */
import type { DatabaseSync } from "node:sqlite";
import type { JobError, JobRecord, JobState } from "../../job.ts";
import type { JobFilter, QueueStats } from "../../store.ts";
import { parseId } from "../../validate.ts";
import { CANCELLED, DEAD, PENDING, QUARANTINED, SUCCEEDED } from "../schema.ts";
import { row, rows } from "../sql.ts";
import { prepareSelect } from "./filter.ts";

/** A `JobRecord` whose payload and result are still JSON. */
export type RecordRow = Omit<JobRecord, "payload" | "result"> & {
  readonly payload: string;
  readonly result: string | undefined;
};

interface JobRow {
  readonly id: number;
  readonly queue: string;
  readonly state: number;
  readonly priority: number;
  readonly run_at: number;
  readonly attempts: number;
  readonly max_attempts: number;
  readonly crashes: number;
  readonly errors: number;
  readonly added_at: number;
  readonly ended_at: number | null;
  readonly unique_key: string | null;
  readonly reason: string | null;
  readonly result: string | null;
  readonly payload: string;
}

interface ErrorRow {
  readonly at: number;
  readonly attempt: number;
  readonly crash: number;
  readonly message: string;
}

const COLUMNS = `id, queue, state, priority, run_at, attempts, max_attempts, crashes, errors, added_at, ended_at,
  unique_key, reason, result, payload`;
const ENDED: Readonly<Record<number, JobState>> = {
  [DEAD]: "dead",
  [QUARANTINED]: "quarantined",
  [SUCCEEDED]: "succeeded",
  [CANCELLED]: "cancelled",
};

export function prepareGet(db: DatabaseSync): (id: string, now: number) => RecordRow | undefined {
  const find = row<JobRow>(db, `SELECT ${COLUMNS} FROM sluice_jobs WHERE id = ?`);
  const toRecord = prepareRecord(db);
  return (id, now) => {
    const found = find(parseId(id) ?? 0);
    return found === undefined ? undefined : toRecord(found, now);
  };
}

export function prepareList(
  db: DatabaseSync,
): (filter: JobFilter, after: number, limit: number, now: number) => RecordRow[] {
  const select = prepareSelect<JobRow>(db, COLUMNS, "TRUE");
  const toRecord = prepareRecord(db);
  return (filter, after, limit, now) => select(filter, now, after, limit).map((found) => toRecord(found, now));
}

function prepareRecord(db: DatabaseSync): (job: JobRow, now: number) => RecordRow {
  const errorsOf = rows<ErrorRow>(
    db,
    "SELECT at, attempt, crash, message FROM sluice_job_errors WHERE job_id = ? ORDER BY number",
  );
  return (job, now) => ({
    id: String(job.id),
    queue: job.queue,
    state: ENDED[job.state] ?? (job.state === PENDING ? (job.run_at > now ? "scheduled" : "ready") : "running"),
    payload: job.payload,
    priority: job.priority,
    attempts: job.attempts,
    maxAttempts: job.max_attempts,
    crashes: job.crashes,
    uniqueKey: job.unique_key ?? undefined,
    addedAt: job.added_at,
    runAt: job.run_at,
    endedAt: job.ended_at ?? undefined,
    result: job.result ?? undefined,
    errors: job.errors === 0 ? [] : errorsOf(job.id).map(toError),
    reason: job.reason ?? undefined,
  });
}

function toError({ at, attempt, crash, message }: ErrorRow): JobError {
  return { at, attempt, kind: crash === 1 ? "crash" : "failure", message };
}

/** Seeks once for each priority, however many jobs there are. */
export function prepareNextAt(db: DatabaseSync): (queue: string) => number | undefined {
  const nextPriority = row<{ readonly priority: number; readonly run_at: number }>(
    db,
    `SELECT priority, run_at FROM sluice_jobs WHERE queue = ? AND state = 0 AND priority < ?
      ORDER BY priority DESC, run_at, id LIMIT 1`,
  );
  const nextLease = row<{ readonly lease_until: number | null }>(
    db,
    "SELECT min(lease_until) AS lease_until FROM sluice_jobs WHERE queue = ? AND state = 1",
  );
  return (queue) => {
    let at = nextLease(queue)?.lease_until ?? Infinity;
    for (let next = nextPriority(queue, Infinity); next !== undefined; next = nextPriority(queue, next.priority))
      at = Math.min(at, next.run_at);
    return at === Infinity ? undefined : at;
  };
}

/** Counts by walking indexes: what it takes grows with the number of jobs that wait. */
export function prepareStats(db: DatabaseSync): (queue: string, now: number) => QueueStats {
  const pending = row<{ readonly scheduled: number; readonly ready: number; readonly earliest: number | null }>(
    db,
    `SELECT count(*) FILTER (WHERE run_at > ?1) AS scheduled, count(*) FILTER (WHERE run_at <= ?1) AS ready,
      min(run_at) AS earliest FROM sluice_jobs WHERE queue = ?2 AND state = 0`,
  );
  const running = row<{ readonly running: number }>(
    db,
    "SELECT count(*) AS running FROM sluice_jobs WHERE queue = ? AND state = 1",
  );
  const dead = row<{ readonly dead: number; readonly quarantined: number }>(
    db,
    `SELECT count(*) FILTER (WHERE state = 2) AS dead, count(*) FILTER (WHERE state = 3) AS quarantined
      FROM sluice_jobs WHERE queue = ? AND state IN (2, 3)`,
  );
  return (queue, now) => {
    const { scheduled = 0, ready = 0, earliest = null } = pending(now, queue) ?? {};
    return {
      scheduled,
      ready,
      running: running(queue)?.running ?? 0,
      dead: dead(queue)?.dead ?? 0,
      quarantined: dead(queue)?.quarantined ?? 0,
      oldestReadyMs: Math.max(0, now - (earliest ?? now)),
    };
  };
}
