/** Procedures of people and of housekeeping. */
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import { lostOutcome } from "./attempts.ts";
import type { DeadFilter, Procedures } from "./calls.ts";
import { notificationJob } from "./queues.ts";
import { hasEnded, prepareRows, type NotificationRow } from "./rows.ts";

/** The conditions of a filter on dead notifications, as SQL with a parameter each; never takes text into the SQL. */
export const DEAD_WHERE = `
  status = 'dead'
  AND (:user IS NULL OR user = :user)
  AND (:channel IS NULL OR channel = :channel)
  AND (:rule IS NULL OR rule = :rule)
  AND (:ids IS NULL OR id IN (SELECT value FROM json_each(:ids)))`;

export function deadParameters({ ids, user, channel, rule }: DeadFilter): Record<string, SQLInputValue> {
  return {
    user: user ?? null,
    channel: channel ?? null,
    rule: rule ?? null,
    ids: ids === undefined ? null : JSON.stringify(ids),
  };
}

export function prepareUpkeep(db: DatabaseSync): Pick<Procedures, "bury" | "redrive" | "prune"> {
  const rows = prepareRows(db);
  const dead = db.prepare(`SELECT n FROM notifications WHERE ${DEAD_WHERE} ORDER BY n LIMIT :max`);
  // In the order in which they came, so that it ends at the first that is young: to look at all of them, or to keep an
  // index of their times, would cost too much. One from a clock that was ahead holds up those after it.
  const page = db.prepare("SELECT n, accepted_at AS acceptedAt FROM events WHERE n > ? ORDER BY n LIMIT ?");
  const isOver = db.prepare(`
    SELECT 1 FROM events WHERE n = ? AND expanded_at IS NOT NULL AND NOT EXISTS (
      SELECT 1 FROM notifications WHERE event = events.n AND status NOT IN ('delivered', 'dropped'))`);
  const removals = [
    "DELETE FROM steps WHERE notification IN (SELECT n FROM notifications WHERE event = ?)",
    "DELETE FROM notifications WHERE event = ?",
    "DELETE FROM event_bodies WHERE event = ?",
    "DELETE FROM events WHERE n = ?",
  ].map((sql) => db.prepare(sql));
  const refill = db.prepare("DELETE FROM buckets WHERE tat <= ?");

  return {
    bury({ run, notification, round, reason }, { now }) {
      const row = rows.get(notification);
      if (row === undefined || row.round !== round || hasEnded(row)) return false;
      rows.move(row, {
        run,
        status: "dead",
        reason,
        steps: [...lostOutcome(row, now), { at: now, kind: "dead", detail: reason }],
      });
      return true;
    },

    redrive({ run, filter, max }, jobs) {
      const found = dead.all({ ...deadParameters(filter), max }) as unknown as { readonly n: number }[];
      const moved = found.map(({ n }) => rows.get(n) as NotificationRow);
      for (const row of moved)
        rows.move(row, {
          run,
          status: "queued",
          round: row.round + 1,
          failures: 0,
          charged: false, // what was paid for long ago must not come on top of what the user gets now
          firstAttemptAt: undefined, // its deadline starts anew
          steps: [{ at: jobs.now, kind: "redriven" }],
        });
      const added = moved.map(({ n, channel, round }) =>
        notificationJob(channel, { notification: n, round: round + 1 }),
      );
      if (added.length > 0) jobs.add(added);
      return added.length;
    },

    prune({ before, after, max }, { now }) {
      const events = page.all(after, max) as unknown as { readonly n: number; readonly acceptedAt: number }[];
      const young = events.findIndex(({ acceptedAt }) => acceptedAt >= before);
      const old = young === -1 ? events : events.slice(0, young);
      for (const { n } of old) if (isOver.get(n) !== undefined) for (const removal of removals) removal.run(n);
      const more = old.length === max;
      if (!more) refill.run(now);
      return { last: old.at(-1)?.n ?? after, more };
    },
  };
}
