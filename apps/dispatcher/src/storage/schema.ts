/**
 * The dispatcher's tables. They lie in the file of the jobs, so that a notification and its job change together.
 * Each element is run once, in order, and frozen once released.
 */
export const migrations: readonly string[] = [
  `
  -- An event's body lies apart: a change of its row would copy the whole body.
  CREATE TABLE events (
    n INTEGER PRIMARY KEY,
    source TEXT NOT NULL,
    event_id TEXT NOT NULL,
    type TEXT NOT NULL,
    subject TEXT,
    time TEXT,
    accepted_at INTEGER NOT NULL,
    expanded_at INTEGER,
    failure TEXT,
    UNIQUE (source, event_id)
  ) STRICT;
  CREATE TABLE event_bodies (event INTEGER PRIMARY KEY REFERENCES events, data TEXT NOT NULL) STRICT;

  -- Events accepted and not yet expanded, kept exact by accept, expand and abandon: counting them would take too long.
  CREATE TABLE intake (waiting INTEGER NOT NULL CHECK (waiting >= 0)) STRICT;
  INSERT INTO intake VALUES (0);

  CREATE TABLE notifications (
    n INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    event INTEGER NOT NULL REFERENCES events,
    user TEXT NOT NULL,
    channel TEXT NOT NULL,
    rule TEXT NOT NULL,
    template TEXT NOT NULL,
    over_limit TEXT NOT NULL CHECK (over_limit IN ('defer', 'drop')),
    status TEXT NOT NULL CHECK (status IN ('queued', 'deferred', 'sending', 'delivered', 'dropped', 'dead')),
    reason TEXT,
    matched_at INTEGER NOT NULL,
    -- How often it was redriven.
    round INTEGER NOT NULL DEFAULT 0,
    -- Whether the user's bucket has paid for it, also in advance.
    charged INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    -- Attempts with a bad outcome since the start or the last redrive.
    failures INTEGER NOT NULL DEFAULT 0,
    first_attempt_at INTEGER,
    -- Of a deferred one: by whom, and not before when; by the breaker: how often in a row.
    deferred_by TEXT CHECK (deferred_by IN ('limit', 'breaker')),
    until INTEGER,
    turned_away INTEGER NOT NULL DEFAULT 0,
    steps INTEGER NOT NULL DEFAULT 0,
    -- Which run of a dispatcher changed it last.
    run INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX notifications_of_event ON notifications (event);
  CREATE INDEX notifications_deferred ON notifications (deferred_by, until) WHERE status = 'deferred';
  CREATE INDEX notifications_dead ON notifications (n) WHERE status = 'dead';

  CREATE TABLE steps (
    notification INTEGER NOT NULL REFERENCES notifications,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    attempt INTEGER,
    until INTEGER,
    duration_ms INTEGER,
    detail TEXT,
    PRIMARY KEY (notification, seq)
  ) STRICT, WITHOUT ROWID;

  -- Per user, the theoretical arrival time of the token bucket; a user without a row has a full one.
  CREATE TABLE buckets (user TEXT PRIMARY KEY, tat REAL NOT NULL) STRICT, WITHOUT ROWID;

  -- How many notifications are where, kept by the triggers.
  CREATE TABLE tallies (
    channel TEXT NOT NULL,
    status TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (channel, status)
  ) STRICT, WITHOUT ROWID;
  CREATE TRIGGER notifications_added AFTER INSERT ON notifications BEGIN
    INSERT INTO tallies VALUES (new.channel, new.status, 1) ON CONFLICT DO UPDATE SET number = number + 1;
  END;
  CREATE TRIGGER notifications_moved AFTER UPDATE OF status ON notifications WHEN old.status <> new.status BEGIN
    UPDATE tallies SET number = number - 1 WHERE channel = old.channel AND status = old.status;
    INSERT INTO tallies VALUES (new.channel, new.status, 1) ON CONFLICT DO UPDATE SET number = number + 1;
  END;
  CREATE TRIGGER notifications_removed AFTER DELETE ON notifications BEGIN
    UPDATE tallies SET number = number - 1 WHERE channel = old.channel AND status = old.status;
  END;
  `,
];
