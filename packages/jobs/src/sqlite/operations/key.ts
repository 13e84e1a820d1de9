/** Who holds a unique key. Of the jobs with one key that have not ended, all but the holder have `lost_key` set. */
import type { DatabaseSync } from "node:sqlite";
import { RUNNING } from "../schema.ts";
import { change, row } from "../sql.ts";

export interface Holder {
  readonly id: number;
  readonly state: number;
  readonly lease_until: number | null;
}

/** The job that holds the key. A running one whose lease has lapsed does so no longer once this has been asked. */
export function prepareHolder(db: DatabaseSync): (queue: string, key: string, now: number) => Holder | undefined {
  const find = row<Holder>(
    db,
    `SELECT id, state, lease_until FROM sluice_jobs
      WHERE queue = ? AND unique_key = ? AND unique_key IS NOT NULL AND state < 2 AND lost_key = 0`,
  );
  const free = change(db, "UPDATE sluice_jobs SET lost_key = 1 WHERE id = ?");

  return (queue, key, now) => {
    const holder = find(queue, key);
    if (holder === undefined || holder.state !== RUNNING || (holder.lease_until ?? 0) > now) return holder;
    free(holder.id);
    return undefined;
  };
}
