import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { VirtualClock } from "sluice/testing";
import { expect, it, onTestFinished } from "vitest";
import { Jobs } from "../client.ts";
import type { Json } from "../job.ts";
import { SqliteStore } from "./sqlite-store.ts";

it("adds jobs that are there if the caller's transaction commits", async () => {
  const { store, db } = await open();
  db.exec("BEGIN IMMEDIATE; INSERT INTO orders VALUES (1)");
  const [added] = store.addWithin(db, [{ queue: "mail", payload: { order: 1 } }]);
  db.exec("COMMIT");
  expect(await store.get(added?.id ?? "")).toMatchObject({ state: "ready", payload: { order: 1 } });
});

it("adds nothing if the caller's transaction rolls back", async () => {
  const { store, db } = await open();
  db.exec("BEGIN IMMEDIATE; INSERT INTO orders VALUES (1)");
  const [added] = store.addWithin(db, [{ queue: "mail", payload: null, uniqueKey: "k" }]);
  expect(added?.outcome).toBe("created");
  db.exec("ROLLBACK");
  expect(await store.list({})).toEqual([]);
  expect(await store.add([{ queue: "mail", payload: null, uniqueKey: "k" }])).toMatchObject([{ outcome: "created" }]);
});

it("fails while the caller can still roll back, so that there is no row without its job", async () => {
  const { store, db, path } = await open();
  const order = (payload: Json): void => {
    db.exec("BEGIN");
    try {
      store.addWithin(db, [{ queue: "mail", payload }]);
      db.exec("INSERT INTO orders VALUES (1); COMMIT");
    } finally {
      if (db.isTransaction) db.exec("ROLLBACK");
    }
  };
  expect(() => order(Number.NaN)).toThrow("jobs[0].payload must be a finite number, got NaN");
  const other = new DatabaseSync(path);
  other.exec("BEGIN IMMEDIATE");
  expect(() => order(1)).toThrow("database is locked");
  other.close();
  db.exec("CREATE TRIGGER full BEFORE INSERT ON sluice_jobs BEGIN SELECT RAISE(ROLLBACK, 'full'); END");
  expect(() => order(2)).toThrow("full"); // as a full disk does, this ends the transaction
  db.exec("DROP TRIGGER full");
  expect(db.prepare("SELECT count(*) AS n FROM orders").get()).toEqual({ n: 0 });
  order(3);
  expect(db.prepare("SELECT count(*) AS n FROM orders").get()).toEqual({ n: 1 });
  expect((await store.list({})).map(({ payload }) => payload)).toEqual([3]);
});

it("adds through the client with its types and options", async () => {
  const { store, db } = await open();
  const jobs = new Jobs<{ mail: { to: string } }>(store);
  db.exec("BEGIN IMMEDIATE");
  const { id, outcome } = jobs.addWithin(db, "mail", { to: "a" }, { priority: 3, uniqueKey: "k" });
  expect(jobs.addWithin(db, "mail", { to: "b" }, { uniqueKey: "k" })).toEqual({ id, outcome: "existing" });
  db.exec("COMMIT");
  expect(outcome).toBe("created");
  expect(await jobs.get(id)).toMatchObject({ queue: "mail", payload: { to: "a" }, priority: 3 });
});

it("keeps unique keys within the transaction as it does without", async () => {
  const { store, db } = await open();
  await store.add([{ queue: "mail", payload: 1, uniqueKey: "k" }]);
  db.exec("BEGIN IMMEDIATE");
  const job = { queue: "mail", uniqueKey: "k" };
  const added = store.addWithin(db, [
    { ...job, payload: 2 },
    { ...job, payload: 3, onConflict: "replace" },
  ]);
  db.exec("COMMIT");
  expect(added).toEqual([
    { id: "1", outcome: "existing" },
    { id: "1", outcome: "replaced" },
  ]);
  expect(await store.get("1")).toMatchObject({ payload: 3 });
});

it("adds all of its jobs or none, also if the caller commits in spite of the error", async () => {
  const { store, db } = await open();
  db.exec("CREATE TRIGGER two BEFORE INSERT ON sluice_jobs WHEN new.payload = '2' BEGIN SELECT RAISE(FAIL, 'no'); END");
  db.exec("BEGIN IMMEDIATE; INSERT INTO orders VALUES (1)");
  const jobs = [1, 2].map((payload) => ({ queue: "mail", payload }));
  expect(() => store.addWithin(db, jobs)).toThrow("no");
  db.exec("COMMIT");
  expect(await store.list({})).toEqual([]);
  expect(db.prepare("SELECT count(*) AS n FROM orders").get()).toEqual({ n: 1 });
});

it("wakes the workers of this process when the transaction has committed in the same turn", async () => {
  const { store, db } = await open();
  const heard = new Promise<string>((resolve) => void store.onReady(resolve));
  db.exec("BEGIN IMMEDIATE");
  store.addWithin(db, [{ queue: "mail", payload: 1 }]);
  db.exec("COMMIT");
  const claimed = await store.claim({ queue: await heard, max: 1, leaseMs: 1_000, worker: "w" });
  expect(claimed).toMatchObject([{ queue: "mail", payload: 1 }]);
});

it("reads a handle that was opened for big integers and arrays as any other", async () => {
  const { store, path } = await open();
  const db = new DatabaseSync(path, { readBigInts: true, returnArrays: true });
  db.exec("BEGIN IMMEDIATE");
  const job = { queue: "mail", payload: 1, uniqueKey: "k" };
  const added = store.addWithin(db, [job, job]);
  db.exec("COMMIT");
  expect(added).toMatchObject([{ id: "1" }, { id: "1", outcome: "existing" }]);
  db.close();
});

it("knows its file by any name", async () => {
  const { store, path } = await open();
  const link = `${path}-link`;
  symlinkSync(path, link);
  const db = new DatabaseSync(link);
  db.exec("BEGIN IMMEDIATE");
  const added = store.addWithin(db, [{ queue: "mail", payload: 1 }]);
  db.exec("COMMIT");
  expect(added).toMatchObject([{ outcome: "created" }]);
  db.close();
});

it("refuses what is no transaction on its file", async () => {
  const { store, db } = await open();
  const add = (transaction: unknown) => (): unknown =>
    store.addWithin(transaction as DatabaseSync, [{ queue: "mail", payload: 1 }]);
  expect(add({})).toThrow("transaction must be a DatabaseSync, got object");
  expect(add(db)).toThrow("inside BEGIN and COMMIT, got one outside");
  const other = new DatabaseSync(":memory:");
  other.exec("BEGIN");
  expect(add(other)).toThrow("got one in memory");
  other.close();
  expect(add(other)).toThrow("got one outside");
  const elsewhere = await open();
  elsewhere.db.exec("BEGIN IMMEDIATE");
  elsewhere.store.addWithin(elsewhere.db, [{ queue: "mail", payload: 1 }]);
  expect(add(elsewhere.db)).toThrow("the store's file, got");
  elsewhere.db.exec("ROLLBACK");
  expect(await store.list({})).toEqual([]);
});

it("takes none when it is in memory itself, or closed", async () => {
  const { db } = await open();
  const store = await SqliteStore.open({ path: ":memory:" });
  db.exec("BEGIN");
  const add = (): unknown => store.addWithin(db, [{ queue: "mail", payload: 1 }]);
  expect(add).toThrow("transaction must be on :memory:");
  await store.close();
  expect(add).toThrow("the job store is closed");
});

async function open(): Promise<{ readonly store: SqliteStore; readonly db: DatabaseSync; readonly path: string }> {
  const folder = mkdtempSync(join(tmpdir(), "sqlite-"));
  const path = join(folder, "jobs.db");
  const store = await SqliteStore.open({ path, durability: "normal", clock: new VirtualClock() });
  const db = new DatabaseSync(path, { timeout: 0 });
  db.exec("CREATE TABLE orders (id)");
  onTestFinished(async () => {
    db.close();
    await store.close();
    rmSync(folder, { recursive: true });
  });
  return { store, db, path };
}
