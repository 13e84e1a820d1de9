/** Jobs come in. Tells `onReady` of their queues. */
import type { DatabaseSync } from "node:sqlite";
import type { Added } from "../../job.ts";
import type { PreparedJob } from "../../validate.ts";
import { PENDING, RUNNING } from "../schema.ts";
import { change, insert } from "../sql.ts";
import { prepareHolder, type Holder } from "./key.ts";

export function prepareAdd(
  db: DatabaseSync,
  onReady: (queue: string) => void,
): (jobs: readonly PreparedJob[], now: number) => Added[] {
  const findHolder = prepareHolder(db);
  const create = insert(
    db,
    `INSERT INTO sluice_jobs (queue, priority, run_at, max_attempts, added_at, unique_key, payload)
      VALUES (?, ?, ?, ?, ?, ?, ?)`,
  );
  const replace = change(
    db,
    "UPDATE sluice_jobs SET payload = ?, run_at = ?, priority = ?, reason = NULL WHERE id = ?",
  );

  const takeKey = change(db, "UPDATE sluice_jobs SET lost_key = 1 WHERE id = ?");

  const holderOf = (queue: string, key: string | null, now: number): Holder | undefined => {
    const holder = key === null ? undefined : findHolder(queue, key);
    if (holder?.state !== RUNNING || (holder.lease_until ?? 0) > now) return holder;
    takeKey(holder.id); // its lease has lapsed
    return undefined;
  };

  return (jobs, now) =>
    jobs.map((job): Added => {
      const { queue, priority, maxAttempts, uniqueKey = null, payload } = job;
      const runAt = job.runAt ?? now + job.delayMs;
      const holder = holderOf(queue, uniqueKey, now);
      if (holder === undefined) {
        onReady(queue);
        const id = create(queue, priority, runAt, maxAttempts, now, uniqueKey, payload);
        return { id: String(id), outcome: "created" };
      }
      const id = String(holder.id);
      if (!job.replace || holder.state !== PENDING) return { id, outcome: "existing" };
      onReady(queue);
      replace(payload, runAt, priority, holder.id);
      return { id, outcome: "replaced" };
    });
}
