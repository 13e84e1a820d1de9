/** Who holds a unique key. Of the jobs with one key that have not ended, all but the holder have `lost_key` set. */
import type { DatabaseSync } from "node:sqlite";
import { row } from "../sql.ts";

export interface Holder {
  readonly id: number;
  readonly state: number;
  readonly lease_until: number | null;
}

export function prepareHolder(db: DatabaseSync): (queue: string, key: string) => Holder | undefined {
  return row<Holder>(
    db,
    `SELECT id, state, lease_until FROM sluice_jobs
      WHERE queue = ? AND unique_key = ? AND unique_key IS NOT NULL AND state < 2 AND lost_key = 0`,
  );
}
