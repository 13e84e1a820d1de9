/**
 * What the main thread reads: through a connection of its own that can't write, synchronously, and never waiting for
 * the writer (WAL).
 */
import { DatabaseSync } from "node:sqlite";
import type { Event, HistoryEntry, NotificationHistory, NotificationStatus, NotificationSummary } from "../model.ts";
import type { DeadFilter } from "./calls.ts";
import { DEAD_WHERE, deadParameters } from "./upkeep.ts";

/** What a delivery needs to know. */
export interface StoredNotification {
  readonly id: string;
  readonly event: number;
  readonly user: string;
  readonly channel: string;
  readonly rule: string;
  readonly template: string;
  readonly overLimit: "defer" | "drop";
}

export interface StoredEvent {
  readonly event: Event;
  /** Of its data, as JSON. */
  readonly characters: number;
}

export interface DeadLetter {
  readonly id: string;
  readonly user: string;
  readonly channel: string;
  readonly rule: string;
  readonly reason: string;
  readonly diedAt: number;
}

/** How much there is, over all processes on the file. */
export interface Standing {
  /** Events accepted and not yet expanded. */
  readonly waiting: number;
  /** By channel, then by status. */
  readonly notifications: ReadonlyMap<string, ReadonlyMap<NotificationStatus, number>>;
}

export class Reader {
  readonly #db: DatabaseSync;
  readonly #statements: ReturnType<typeof prepareReads>;

  /** The file must exist and have its tables. */
  constructor(path: string) {
    this.#db = new DatabaseSync(path, { readOnly: true });
    try {
      this.#db.exec("pragma busy_timeout = 5000");
      this.#statements = prepareReads(this.#db);
    } catch (error) {
      this.#db.close();
      throw error;
    }
  }

  notification(n: number): StoredNotification | undefined {
    return this.#statements.notification.get(n) as StoredNotification | undefined;
  }

  event(n: number): StoredEvent | undefined {
    const row = this.#statements.event.get(n) as unknown as EventRow | undefined;
    if (row === undefined) return undefined;
    const { id, source, type, subject, time, data } = row;
    const event = { id, source, type, subject: subject ?? undefined, time: time ?? undefined, data: JSON.parse(data) };
    return { event, characters: data.length };
  }

  history(id: string): NotificationHistory | undefined {
    const row = this.#statements.history.get(id) as unknown as HistoryRow | undefined;
    if (row === undefined) return undefined;
    const steps = this.#statements.steps.all(row.n) as unknown as StepRow[];
    const { eventId, source, type, acceptedAt, matchedAt, user, channel, rule, status, reason } = row;
    const entries: readonly HistoryEntry[] = [
      { at: acceptedAt, kind: "accepted" },
      { at: matchedAt, kind: "matched", detail: `by rule ${rule}` },
      ...steps.map(toEntry),
    ];
    return {
      id,
      event: { id: eventId, source, type },
      user,
      channel,
      rule,
      status,
      reason: reason ?? undefined,
      entries,
    };
  }

  /** The notifications of an event, in the order in which they were planned: the first `max`. */
  ofEvent(source: string, id: string, max: number): NotificationSummary[] {
    const rows = this.#statements.ofEvent.all(source, id, max) as unknown as SummaryRow[];
    return rows.map((row) => Object.assign(row, { reason: row.reason ?? undefined }));
  }

  standing(): Standing {
    const { waiting } = this.#statements.waiting.get() as unknown as { waiting: number };
    const notifications = new Map<string, Map<NotificationStatus, number>>();
    for (const row of this.#statements.tally.all() as unknown as TallyRow[]) {
      const statuses = notifications.get(row.channel) ?? new Map<NotificationStatus, number>();
      notifications.set(row.channel, statuses.set(row.status, row.number));
    }
    return { waiting, notifications };
  }

  /**
   * `busy` while something is left to expand, send or retry, or has been deferred and is due; else `resting` while
   * something waits for a breaker, which takes seconds; else `idle`, though some may wait for their users' limits.
   */
  activity(now: number): "busy" | "resting" | "idle" {
    if (this.#statements.busy.get({ now }) !== undefined) return "busy";
    return this.#statements.resting.get() === undefined ? "idle" : "resting";
  }

  /** Oldest first. */
  dead(filter: DeadFilter, max: number): DeadLetter[] {
    return this.#statements.dead.all({ ...deadParameters(filter), max }) as unknown as DeadLetter[];
  }

  countDead(filter: DeadFilter): number {
    return (this.#statements.countDead.get(deadParameters(filter)) as unknown as { number: number }).number;
  }

  /** Idempotent. */
  close(): void {
    if (this.#db.isOpen) this.#db.close();
  }
}

interface EventRow {
  readonly id: string;
  readonly source: string;
  readonly type: string;
  readonly subject: string | null;
  readonly time: string | null;
  readonly data: string;
}

interface HistoryRow {
  readonly n: number;
  readonly eventId: string;
  readonly source: string;
  readonly type: string;
  readonly acceptedAt: number;
  readonly matchedAt: number;
  readonly user: string;
  readonly channel: string;
  readonly rule: string;
  readonly status: NotificationStatus;
  readonly reason: string | null;
}

interface SummaryRow extends Omit<NotificationSummary, "reason"> {
  readonly reason: string | null;
}

interface StepRow {
  readonly at: number;
  readonly kind: HistoryEntry["kind"];
  readonly attempt: number | null;
  readonly until: number | null;
  readonly durationMs: number | null;
  readonly detail: string | null;
}

interface TallyRow {
  readonly channel: string;
  readonly status: NotificationStatus;
  readonly number: number;
}

function toEntry({ at, kind, attempt, until, durationMs, detail }: StepRow): HistoryEntry {
  return {
    at,
    kind,
    ...(attempt !== null && { attempt }),
    ...(until !== null && { until }),
    ...(durationMs !== null && { durationMs }),
    ...(detail !== null && { detail }),
  };
}

// oxlint-disable-next-line typescript/explicit-module-boundary-types -- a record of statements
function prepareReads(db: DatabaseSync) {
  return {
    notification: db.prepare(`
      SELECT id, event, user, channel, rule, template, over_limit AS overLimit FROM notifications WHERE n = ?`),
    event: db.prepare(`
      SELECT event_id AS id, source, type, subject, time, data
      FROM events JOIN event_bodies ON event_bodies.event = events.n WHERE events.n = ?`),
    history: db.prepare(`
      SELECT notifications.n, event_id AS eventId, source, type, accepted_at AS acceptedAt, matched_at AS matchedAt,
        user, channel, rule, status, reason
      FROM notifications JOIN events ON events.n = notifications.event WHERE id = ?`),
    ofEvent: db.prepare(`
      SELECT id, user, channel, rule, status, reason FROM notifications
      WHERE event = (SELECT n FROM events WHERE source = ? AND event_id = ?) ORDER BY n LIMIT ?`),
    steps: db.prepare(`
      SELECT at, kind, attempt, until, duration_ms AS durationMs, detail
      FROM steps WHERE notification = ? ORDER BY seq`),
    waiting: db.prepare("SELECT waiting FROM intake"),
    tally: db.prepare("SELECT channel, status, number FROM tallies WHERE number > 0"),
    busy: db.prepare(`
      SELECT 1 FROM intake WHERE waiting > 0
      UNION ALL SELECT 1 FROM tallies WHERE status IN ('queued', 'sending') AND number > 0
      UNION ALL SELECT 1 FROM notifications WHERE status = 'deferred' AND deferred_by = 'limit' AND until <= :now
      UNION ALL SELECT 1 FROM notifications WHERE status = 'deferred' AND deferred_by = 'breaker' AND until <= :now
      LIMIT 1`),
    resting: db.prepare("SELECT 1 FROM notifications WHERE status = 'deferred' AND deferred_by = 'breaker' LIMIT 1"),
    dead: db.prepare(`
      SELECT id, user, channel, rule, reason,
        (SELECT at FROM steps WHERE notification = n ORDER BY seq DESC LIMIT 1) AS diedAt
      FROM notifications WHERE ${DEAD_WHERE} ORDER BY n LIMIT :max`),
    countDead: db.prepare(`SELECT count(*) AS number FROM notifications WHERE ${DEAD_WHERE}`),
  };
}
