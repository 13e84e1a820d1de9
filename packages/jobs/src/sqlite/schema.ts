/**
 * The tables. Their names begin with `sluice_`, because the file may be shared with tables of the user's own. Each
 * migration is frozen once released; `schema.sql` shows where all of them together lead.
 */
import type { DatabaseSync } from "node:sqlite";

/**
 * What `sluice_jobs.state` holds. A pending job is scheduled before its `run_at` and ready from then on. The order
 * matters: below 2 a job has not ended, from 4 on it is kept for `retention.succeededMs`.
 */
export const PENDING = 0;
export const RUNNING = 1;
export const DEAD = 2;
export const QUARANTINED = 3;
export const SUCCEEDED = 4;
export const CANCELLED = 5;

export type EndState = typeof DEAD | typeof QUARANTINED | typeof SUCCEEDED | typeof CANCELLED;

/**
 * `lost_key` is 1 for a job whose lease lapsed and whose unique key a newer job took. Queues are claimed by walking
 * `sluice_jobs_pending`, one priority after the other. `sluice_meta` has the version of each part of the schema and
 * the last token given out; a token is never given twice, also not after the job it was for is gone.
 */
const MIGRATIONS: readonly string[] = [
  `CREATE TABLE sluice_jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    queue TEXT NOT NULL,
    state INTEGER NOT NULL DEFAULT 0,
    priority INTEGER NOT NULL,
    run_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    max_attempts INTEGER NOT NULL,
    crashes INTEGER NOT NULL DEFAULT 0,
    errors INTEGER NOT NULL DEFAULT 0,
    token INTEGER NOT NULL DEFAULT 0,
    lost_key INTEGER NOT NULL DEFAULT 0,
    lease_until INTEGER,
    added_at INTEGER NOT NULL,
    ended_at INTEGER,
    unique_key TEXT,
    worker TEXT,
    reason TEXT,
    result TEXT,
    payload TEXT NOT NULL
  ) STRICT;
  CREATE INDEX sluice_jobs_pending ON sluice_jobs (queue, priority DESC, run_at, id) WHERE state = 0;
  CREATE INDEX sluice_jobs_leased ON sluice_jobs (queue, lease_until) WHERE state = 1;
  CREATE UNIQUE INDEX sluice_jobs_unique ON sluice_jobs (queue, unique_key)
    WHERE unique_key IS NOT NULL AND state < 2 AND lost_key = 0;
  CREATE INDEX sluice_jobs_dead ON sluice_jobs (queue, state, id) WHERE state IN (2, 3);
  CREATE INDEX sluice_jobs_ended ON sluice_jobs (ended_at) WHERE state >= 4;
  CREATE TABLE sluice_job_errors (
    job_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    crash INTEGER NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (job_id, number)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO sluice_meta (name, value) VALUES ('token', 0);`,
];

/** Brings the file up to date, and with it the tables of the procedures, if any. Runs inside a write transaction. */
export function migrate(db: DatabaseSync, procedures: readonly string[] | undefined): void {
  db.exec(
    "CREATE TABLE IF NOT EXISTS sluice_meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID",
  );
  advance(db, "schema", MIGRATIONS);
  if (procedures !== undefined) advance(db, "procedures", procedures);
}

function advance(db: DatabaseSync, part: string, migrations: readonly string[]): void {
  const from = version(db, part);
  if (from > migrations.length)
    throw new Error(`its ${part} has version ${from}, made by newer code: this code knows ${migrations.length}`);
  if (from === migrations.length) return;
  for (const sql of migrations.slice(from)) db.exec(sql);
  db.prepare("INSERT OR REPLACE INTO sluice_meta (name, value) VALUES (?, ?)").run(part, migrations.length);
}

function version(db: DatabaseSync, part: string): number {
  const found = db.prepare("SELECT value FROM sluice_meta WHERE name = ?").get(part);
  return Number(found?.["value"] ?? 0);
}
