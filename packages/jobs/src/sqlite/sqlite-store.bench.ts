// Against the floor: the barest statements on one connection of the main thread, with the same rows in each commit. It
// knows neither queues nor keys, tokens, leases or errors, and each of its commits holds up the event loop.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { compare } from "../../../../bench/harness.ts";
import type { NewJob } from "../job.ts";
import { SqliteStore } from "./sqlite-store.ts";

const folder = mkdtempSync(join(tmpdir(), "sqlite-bench-"));
process.once("exit", () => rmSync(folder, { recursive: true }));

const QUEUE = "mail";
const PAYLOAD = { to: "someone@example.com", subject: "Nothing in particular", body: "x".repeat(40) };
const LEASE_MS = 60_000;
const IN_FLIGHT = 100;
let files = 0;

class Floor {
  readonly #db = new DatabaseSync(join(folder, `floor-${(files += 1)}.db`));
  readonly #insert;
  readonly #claim;
  readonly #remove;

  constructor() {
    this.#db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
      CREATE TABLE job (id INTEGER PRIMARY KEY, queue TEXT NOT NULL, state INTEGER NOT NULL DEFAULT 0, run_at INTEGER NOT NULL,
        payload TEXT NOT NULL);
      CREATE INDEX ready ON job (queue, run_at, id) WHERE state = 0`);
    this.#insert = this.#db.prepare("INSERT INTO job (queue, run_at, payload) VALUES (?, ?, ?)");
    this.#claim = this.#db.prepare(`UPDATE job SET state = 1 WHERE id IN
      (SELECT id FROM job WHERE queue = ? AND state = 0 AND run_at <= ? ORDER BY run_at, id LIMIT ?) RETURNING id, payload`);
    this.#remove = this.#db.prepare("DELETE FROM job WHERE id = ? AND state = 1");
  }

  commit<T>(work: () => T): T {
    this.#db.exec("BEGIN IMMEDIATE");
    const result = work();
    this.#db.exec("COMMIT");
    return result;
  }

  add(count: number): void {
    for (let i = 0; i < count; i += 1) this.#insert.run(QUEUE, Date.now(), JSON.stringify(PAYLOAD));
  }

  claim(max: number): { readonly id: number; readonly payload: unknown }[] {
    const rows = this.#claim.all(QUEUE, Date.now(), max);
    return rows.map(({ id, payload }) => ({ id: Number(id), payload: JSON.parse(String(payload)) }));
  }

  settle(claimed: readonly { readonly id: number }[]): void {
    for (const { id } of claimed) this.#remove.run(id);
  }

  close(): void {
    this.#db.close();
  }
}

async function withStore(work: (store: SqliteStore) => Promise<void>): Promise<void> {
  const store = await SqliteStore.open({ path: join(folder, `${(files += 1)}.db`), retention: { succeededMs: 0 } });
  await work(store);
  await store.close();
}

function withFloor(work: (floor: Floor) => void): void {
  const floor = new Floor();
  work(floor);
  floor.close();
}

const jobs = (count: number): NewJob[] => Array.from({ length: count }, () => ({ queue: QUEUE, payload: PAYLOAD }));

await compare("sqlite-add", 20_000, {
  sluice: (ops) =>
    withStore(async (store) => {
      const add = async (): Promise<void> => {
        for (let left = ops / IN_FLIGHT; left > 0; left -= 1) await store.add(jobs(1));
      };
      await Promise.all(Array.from({ length: IN_FLIGHT }, add));
    }),
  floor: (ops) =>
    withFloor((floor) => {
      for (let left = ops; left > 0; left -= IN_FLIGHT) floor.commit(() => floor.add(IN_FLIGHT));
    }),
});

await compare("sqlite-add-1000", 50_000, {
  sluice: (ops) =>
    withStore(async (store) => {
      for (let left = ops; left > 0; left -= 1_000) await store.add(jobs(1_000));
    }),
  floor: (ops) =>
    withFloor((floor) => {
      for (let left = ops; left > 0; left -= 1_000) floor.commit(() => floor.add(1_000));
    }),
});

/** Each round adds 100 jobs, claims and settles them: three commits. */
await compare("sqlite-cycle-100", 20_000, {
  sluice: (ops) =>
    withStore(async (store) => {
      for (let left = ops; left > 0; left -= 100) {
        await store.add(jobs(100));
        const claimed = await store.claim({ queue: QUEUE, max: 100, leaseMs: LEASE_MS, worker: "bench" });
        await store.settle(claimed.map(({ id, token }) => ({ id, token, kind: "complete" })));
      }
    }),
  floor: (ops) =>
    withFloor((floor) => {
      for (let left = ops; left > 0; left -= 100) {
        floor.commit(() => floor.add(100));
        const claimed = floor.commit(() => floor.claim(100));
        floor.commit(() => floor.settle(claimed));
      }
    }),
});

/** As a server sees it: each of 100 callers adds, claims and settles one job at a time. */
await compare("sqlite-cycle-1", 10_000, {
  sluice: (ops) =>
    withStore(async (store) => {
      const cycle = async (): Promise<void> => {
        for (let left = ops / IN_FLIGHT; left > 0; left -= 1) {
          await store.add(jobs(1));
          const claimed = await store.claim({ queue: QUEUE, max: 1, leaseMs: LEASE_MS, worker: "bench" });
          await store.settle(claimed.map(({ id, token }) => ({ id, token, kind: "complete" })));
        }
      };
      await Promise.all(Array.from({ length: IN_FLIGHT }, cycle));
    }),
  floor: (ops) =>
    withFloor((floor) => {
      for (let left = ops; left > 0; left -= IN_FLIGHT) {
        floor.commit(() => floor.add(IN_FLIGHT));
        const claimed = floor.commit(() => Array.from({ length: IN_FLIGHT }, () => floor.claim(1)).flat());
        floor.commit(() => floor.settle(claimed));
      }
    }),
});
