/** A `JobFilter` as SQL, its terms written so that the partial indexes apply. */
import type { DatabaseSync, SQLInputValue } from "node:sqlite";
import type { JobState } from "../../job.ts";
import { STATES } from "../../states.ts";
import type { JobFilter } from "../../store.ts";
import { parseId } from "../../validate.ts";
import { rows } from "../sql.ts";

/** `?` is now. */
const STATE_TERMS: Readonly<Record<JobState, string>> = {
  scheduled: "state = 0 AND run_at > ?",
  ready: "state = 0 AND run_at <= ?",
  running: "state = 1",
  dead: "state = 2",
  quarantined: "state = 3",
  succeeded: "state = 4",
  cancelled: "state = 5",
};

/** Selects `columns` of the jobs that match the filter and `condition`, oldest first. */
export function prepareSelect<T>(
  db: DatabaseSync,
  columns: string,
  condition: string,
): (filter: JobFilter, now: number, after?: number, limit?: number) => T[] {
  const selects = new Map<string, (...params: SQLInputValue[]) => T[]>();
  return ({ queue, states, ids }, now, after = 0, limit = -1) => {
    const terms = [condition, "id > ?"];
    const params: SQLInputValue[] = [after];
    if (queue !== undefined) {
      terms.push("queue = ?");
      params.push(queue);
    }
    if (states !== undefined) {
      // Each once and in one order: SQLite takes no more than 1,000 terms, and every other text is a statement to keep.
      const any = STATES.filter((state) => states.includes(state)).map((state) => STATE_TERMS[state]);
      terms.push(any.length === 0 ? "FALSE" : `(${any.join(" OR ")})`);
      for (const term of any) if (term.includes("?")) params.push(now);
    }
    if (ids !== undefined) {
      terms.push("id IN (SELECT value FROM json_each(?))");
      params.push(JSON.stringify(ids.map(parseId).filter((id) => id !== undefined)));
    }
    const sql = `SELECT ${columns} FROM sluice_jobs WHERE ${terms.join(" AND ")} ORDER BY id LIMIT ?`;
    let select = selects.get(sql);
    if (select === undefined) selects.set(sql, (select = rows<T>(db, sql)));
    return select(...params, limit);
  };
}
