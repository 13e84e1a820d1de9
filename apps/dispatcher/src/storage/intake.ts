/** Procedures on events: each is accepted once, expanded once, and counted as waiting in between. */
import type { DatabaseSync } from "node:sqlite";
import type { AcceptedEvent, Procedures } from "./calls.ts";
import { expandJob, notificationJob } from "./queues.ts";

export function prepareIntake(db: DatabaseSync): Pick<Procedures, "accept" | "expand" | "abandon"> {
  const waiting = db.prepare("SELECT waiting FROM intake");
  const wait = db.prepare("UPDATE intake SET waiting = waiting + ?");
  const known = db.prepare("SELECT 1 FROM events WHERE source = ? AND event_id = ?");
  const addEvent = db.prepare(`
    INSERT OR IGNORE INTO events (source, event_id, type, subject, time, accepted_at) VALUES (?, ?, ?, ?, ?, ?)`);
  const addData = db.prepare("INSERT INTO event_bodies VALUES (?, ?)");
  const endEvent = db.prepare("UPDATE events SET expanded_at = ?, failure = ? WHERE n = ? AND expanded_at IS NULL");
  const addNotification = db.prepare(`
    INSERT OR IGNORE INTO notifications (id, event, user, channel, rule, template, over_limit, status, matched_at, run)
    VALUES (?, ?, ?, ?, ?, ?, ?, 'queued', ?, ?)`);

  const isKnown = ({ source, id }: AcceptedEvent): boolean => known.get(source, id) !== undefined;

  /** How many of them would be new. */
  const countNew = (events: readonly AcceptedEvent[]): number =>
    new Set(events.filter((event) => !isKnown(event)).map(({ source, id }) => JSON.stringify([source, id]))).size;

  return {
    accept({ events, capacity }, jobs) {
      const room = capacity - (waiting.get() as unknown as { waiting: number }).waiting;
      if (events.length > room && countNew(events) > room) return undefined;
      const rows: number[] = [];
      const isNew = events.map(({ source, id, type, subject, time, data }) => {
        const added = addEvent.run(source, id, type, subject ?? null, time ?? null, jobs.now);
        if (added.changes === 0) return false;
        addData.run(added.lastInsertRowid, data);
        rows.push(Number(added.lastInsertRowid));
        return true;
      });
      if (rows.length === 0) return isNew;
      wait.run(rows.length);
      jobs.add(rows.map(expandJob));
      return isNew;
    },

    expand({ run, claim, event, planned }, jobs) {
      const [settled] = jobs.settle([{ ...claim, kind: "complete" }]);
      if (settled !== true) return { kind: "refused" };
      if (endEvent.run(jobs.now, null, event).changes === 1) wait.run(-1);
      const added = planned.flatMap(({ id, user, channel, rule, template, overLimit }) => {
        const row = addNotification.run(id, event, user, channel, rule, template, overLimit, jobs.now, run);
        if (row.changes === 0) return [];
        return [notificationJob(channel, { notification: Number(row.lastInsertRowid), round: 0 })];
      });
      if (added.length > 0) jobs.add(added);
      return { kind: "expanded", created: added.length };
    },

    abandon({ claim, event, reason }, jobs) {
      if (claim !== undefined && jobs.settle([{ ...claim, kind: "complete" }])[0] !== true) return false;
      if (endEvent.run(jobs.now, reason, event).changes === 0) return false;
      wait.run(-1);
      return true;
    },
  };
}
