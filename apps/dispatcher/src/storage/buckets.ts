/** Each user's token bucket, in the transaction that decides: a restart gives nobody a second burst. */
import type { DatabaseSync } from "node:sqlite";
import { gcra, gcraReserve } from "sluice";

export interface UserLimit {
  readonly count: number;
  readonly perMs: number;
}

export interface Buckets {
  /**
   * How long one more notification must wait, in whole milliseconds; 0 has taken a token. With `reserve` one that has
   * to wait has taken the next token that will be there, without it none.
   */
  take(user: string, limit: UserLimit, now: number, reserve: boolean): number;
}

export function prepareBuckets(db: DatabaseSync): Buckets {
  const select = db.prepare("SELECT tat FROM buckets WHERE user = ?");
  const upsert = db.prepare("INSERT INTO buckets VALUES (?, ?) ON CONFLICT DO UPDATE SET tat = excluded.tat");

  return {
    take(user, { count, perMs }, now, reserve) {
      const row = select.get(user) as { readonly tat: number } | undefined;
      const limit = { intervalMs: perMs / count, burst: count };
      const before = row?.tat ?? -Infinity;
      if (!reserve) {
        const { allowed, tat, retryAfterMs } = gcra(before, now, limit);
        if (allowed) upsert.run(user, tat);
        return Math.ceil(retryAfterMs);
      }
      const { tat, waitMs } = gcraReserve(before, now, limit);
      upsert.run(user, tat);
      return Math.ceil(waitMs);
    },
  };
}
