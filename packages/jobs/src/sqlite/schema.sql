CREATE TABLE sluice_meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE sluice_jobs (
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
