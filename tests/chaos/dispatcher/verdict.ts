// What the drill left behind, read from the two books that don't know of each other: the dispatcher's and the inbox's.
import { readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { CHANNELS } from "./config.ts";

export interface Verdict {
  /** Events that got a 2xx, and of those the ones whose notifications have all ended. */
  readonly accepted: number;
  readonly final: number;
  readonly lost: number;
  /** Messages that the inbox took once more, with the id that they had. */
  readonly duplicateDeliveries: number;
  /** Messages for one event and user over one channel that came with different ids. */
  readonly duplicatesWithOtherId: number;
  /** Attempts that have more than one outcome, and notifications that ended twice. */
  readonly doubleSettles: number;
  /** Said to be delivered, and yet the inbox has never taken them. */
  readonly neverReceived: number;
  /** Messages that the inbox received more often than the history knows of attempts: sent without an intent. */
  readonly unrecordedSends: number;
  /** Attempts of what has ended of which the history doesn't say how they ended, not even that it isn't known. */
  readonly openAttempts: number;
}

interface Receipt {
  readonly channel: string;
  readonly id: string;
  readonly to: string;
  readonly outcome: string;
  readonly raw: string;
}

/** Of the accepted events, those with something still to be done, or without a notification for each channel. */
export function unfinished(file: string, accepted: ReadonlySet<number>): number[] {
  const rows = readAll<{ id: string }>(
    file,
    `SELECT event_id AS id FROM events
     WHERE expanded_at IS NOT NULL AND failure IS NULL
       AND (SELECT count(*) FROM notifications WHERE event = events.n) = ${CHANNELS.length}
       AND NOT EXISTS (SELECT 1 FROM notifications
                       WHERE event = events.n AND status NOT IN ('delivered', 'dropped', 'dead'))`,
  );
  const finished = new Set(rows.map(({ id }) => Number(id)));
  return [...accepted].filter((number) => !finished.has(number));
}

export function judge(file: string, receiptsFile: string, accepted: ReadonlySet<number>): Verdict {
  const lines = readFileSync(receiptsFile, "utf8").split("\n");
  const receipts = lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Receipt);
  const taken = receipts.filter(({ outcome }) => ["ok", "slow", "lose"].includes(outcome));
  const takenIds = new Set(taken.map(({ id }) => id));
  const idsByTarget = new Map<string, Set<string>>();
  for (const receipt of receipts) {
    const target = `${receipt.channel} ${receipt.to} ${tickOf(receipt)}`;
    const ids = idsByTarget.get(target) ?? new Set();
    idsByTarget.set(target, ids.add(receipt.id));
  }
  const count = (sql: string): number => readAll<{ number: number }>(file, sql)[0]?.number ?? Number.NaN;
  const delivered = readAll<{ id: string }>(file, "SELECT id FROM notifications WHERE status = 'delivered'");
  const attempts = readAll<{ id: string; attempts: number }>(
    file,
    `SELECT id, count(*) AS attempts FROM notifications JOIN steps ON notification = n AND kind = 'attempt' GROUP BY n`,
  );
  const intents = new Map(attempts.map(({ id, attempts: number }) => [id, number]));
  const sends = Map.groupBy(receipts, ({ id }) => id);
  const lost = unfinished(file, accepted).length;
  return {
    accepted: accepted.size,
    final: accepted.size - lost,
    lost,
    duplicateDeliveries: taken.length - takenIds.size,
    duplicatesWithOtherId: [...idsByTarget.values()].reduce((sum, ids) => sum + ids.size - 1, 0),
    doubleSettles:
      count(`SELECT count(*) AS number FROM (
               SELECT 1 FROM steps WHERE attempt IS NOT NULL AND kind IN ('delivered', 'failed', 'unknown')
               GROUP BY notification, attempt HAVING count(*) > 1)`) +
      count(`SELECT count(*) AS number FROM (
               SELECT 1 FROM steps WHERE kind IN ('delivered', 'dropped', 'dead')
               GROUP BY notification HAVING count(*) > 1)`),
    neverReceived: delivered.filter(({ id }) => !takenIds.has(id)).length,
    unrecordedSends: [...sends].filter(([id, all]) => all.length > (intents.get(id) ?? 0)).length,
    openAttempts: count(`SELECT count(*) AS number FROM steps AS begun JOIN notifications ON n = begun.notification
      WHERE begun.kind = 'attempt' AND status IN ('delivered', 'dropped', 'dead') AND NOT EXISTS (
        SELECT 1 FROM steps WHERE notification = n AND attempt = begun.attempt
          AND kind IN ('delivered', 'failed', 'unknown'))`),
  };
}

/** The number of the event, from what was received: the inbox knows nothing else of it. */
function tickOf({ raw }: Receipt): string {
  const [, tick] = /(?:^Subject: tick |"tick":")(\d+)/m.exec(raw) ?? [];
  if (tick === undefined) throw new Error(`a receipt names no event: ${raw.slice(0, 500)}`);
  return tick;
}

function readAll<Row>(file: string, sql: string): Row[] {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    return db.prepare(sql).all() as Row[];
  } finally {
    db.close();
  }
}
