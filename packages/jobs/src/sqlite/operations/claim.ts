/** Ready jobs go out, each with a lease and a token of its own. */
import type { DatabaseSync } from "node:sqlite";
import type { ClaimRequest } from "../../store.ts";
import { change, row, tuples } from "../sql.ts";

/** A `ClaimedJob` whose payload is still JSON. */
export interface ClaimedRow {
  readonly id: number;
  readonly token: number;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly addedAt: number;
  readonly runAt: number;
  readonly leaseUntil: number;
  readonly payload: string;
}

type Ready = readonly [
  id: number,
  attempts: number,
  maxAttempts: number,
  addedAt: number,
  runAt: number,
  payload: string,
];

const HIGHEST = 1_000;

export function prepareClaim(db: DatabaseSync): (request: ClaimRequest, now: number) => ClaimedRow[] {
  // A single statement over all priorities would walk past every job that is scheduled in a higher one.
  const nextPriority = row<{ readonly priority: number | null }>(
    db,
    "SELECT max(priority) AS priority FROM sluice_jobs WHERE queue = ? AND state = 0 AND priority <= ?",
  );
  const pick = tuples<Ready>(
    db,
    `SELECT id, attempts, max_attempts, added_at, run_at, payload FROM sluice_jobs
      WHERE queue = ? AND state = 0 AND priority = ? AND run_at <= ? ORDER BY run_at, id LIMIT ?`,
  );
  const take = change(
    db,
    `UPDATE sluice_jobs SET state = 1, attempts = attempts + 1, token = ?, lease_until = ?, worker = ? WHERE id = ?`,
  );
  const lastToken = row<{ readonly value: number }>(db, "SELECT value FROM sluice_meta WHERE name = 'token'");
  const keepToken = change(db, "UPDATE sluice_meta SET value = ? WHERE name = 'token'");

  return ({ queue, max, leaseMs, worker }, now) => {
    const leaseUntil = now + leaseMs;
    const claimed: ClaimedRow[] = [];
    let token = 0;
    let priority = nextPriority(queue, HIGHEST)?.priority ?? null;
    while (priority !== null) {
      const ready = pick(queue, priority, now, max - claimed.length);
      if (ready.length > 0 && token === 0) token = lastToken()?.value ?? 0;
      for (const [id, attempts, maxAttempts, addedAt, runAt, payload] of ready) {
        token += 1;
        take(token, leaseUntil, worker, id);
        claimed.push({ id, token, attempt: attempts + 1, maxAttempts, addedAt, runAt, leaseUntil, payload });
      }
      priority = claimed.length < max ? (nextPriority(queue, priority - 1)?.priority ?? null) : null;
    }
    if (claimed.length > 0) keepToken(token);
    return claimed;
  };
}
