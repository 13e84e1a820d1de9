/** The notification's row as the procedures change it: one move at a time, each with its step of history. */
import type { DatabaseSync } from "node:sqlite";
import type { HistoryEntry, NotificationStatus } from "../model.ts";

export interface NotificationRow {
  readonly n: number;
  readonly user: string;
  readonly channel: string;
  readonly rule: string;
  readonly over_limit: "defer" | "drop";
  readonly status: NotificationStatus;
  readonly round: number;
  readonly charged: number;
  readonly attempts: number;
  readonly failures: number;
  readonly first_attempt_at: number | null;
  readonly deferred_by: "limit" | "breaker" | null;
  readonly until: number | null;
  readonly turned_away: number;
  readonly steps: number;
  readonly run: number;
}

/** What a move changes; whatever is left out stays. */
export interface Move {
  readonly run: number;
  readonly status: NotificationStatus;
  readonly reason?: string | undefined;
  readonly round?: number | undefined;
  readonly charged?: boolean | undefined;
  readonly attempts?: number | undefined;
  readonly failures?: number | undefined;
  readonly firstAttemptAt?: number | undefined;
  readonly deferred?: { readonly by: "limit" | "breaker"; readonly until: number } | undefined;
  readonly turnedAway?: number | undefined;
  readonly steps: readonly HistoryEntry[];
  /** The first of `steps` takes the place of the last one there. */
  readonly replacesLast?: boolean | undefined;
}

export interface Rows {
  get(n: number): NotificationRow | undefined;
  /** Writes the move and answers where the notification was before, if the same run had put it there. */
  move(row: NotificationRow, move: Move): NotificationStatus | undefined;
}

/** Nothing moves it any more, but a redrive if it is dead. */
export function hasEnded({ status }: Pick<NotificationRow, "status">): boolean {
  return status === "delivered" || status === "dropped" || status === "dead";
}

export function prepareRows(db: DatabaseSync): Rows {
  const select = db.prepare(`
    SELECT n, user, channel, rule, over_limit, status, round, charged, attempts, failures, first_attempt_at,
      deferred_by, until, turned_away, steps, run
    FROM notifications WHERE n = ?`);
  const update = db.prepare(`
    UPDATE notifications SET status = ?, reason = ?, round = ?, charged = ?, attempts = ?, failures = ?,
      first_attempt_at = ?, deferred_by = ?, until = ?, turned_away = ?, steps = ?, run = ?
    WHERE n = ?`);
  const upsert = db.prepare("INSERT OR REPLACE INTO steps VALUES (?, ?, ?, ?, ?, ?, ?, ?)");

  return {
    get: (n) => select.get(n) as unknown as NotificationRow | undefined,

    move(row, move) {
      let { steps } = row;
      if (move.replacesLast === true) steps -= 1;
      for (const { at, kind, attempt, until, durationMs, detail } of move.steps) {
        upsert.run(row.n, steps, at, kind, attempt ?? null, until ?? null, whole(durationMs), detail ?? null);
        steps += 1;
      }
      update.run(
        move.status,
        move.reason ?? null,
        move.round ?? row.round,
        (move.charged ?? row.charged === 1) ? 1 : 0,
        move.attempts ?? row.attempts,
        move.failures ?? row.failures,
        "firstAttemptAt" in move ? (move.firstAttemptAt ?? null) : row.first_attempt_at,
        move.deferred?.by ?? null,
        move.deferred?.until ?? null,
        move.turnedAway ?? 0,
        steps,
        move.run,
        row.n,
      );
      return row.run === move.run ? row.status : undefined;
    },
  };
}

function whole(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.round(ms);
}
