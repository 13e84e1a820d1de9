import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { VirtualClock } from "sluice/testing";
import { expect, it, onTestFinished } from "vitest";
import { SqliteStore } from "./sqlite-store.ts";

it("adds jobs that are there if the caller's transaction commits", async () => {
  const { store, db } = await open();
  db.exec("BEGIN IMMEDIATE; INSERT INTO orders VALUES (1)");
  const adding = store.add([{ queue: "mail", payload: { order: 1 } }], { transaction: db });
  db.exec("COMMIT");
  const [added] = await adding;
  expect(await store.get(added?.id ?? "")).toMatchObject({ state: "ready", payload: { order: 1 } });
});

it("adds nothing if the caller's transaction rolls back", async () => {
  const { store, db } = await open();
  db.exec("BEGIN IMMEDIATE; INSERT INTO orders VALUES (1)");
  const [added] = await store.add([{ queue: "mail", payload: null, uniqueKey: "k" }], { transaction: db });
  expect(added?.outcome).toBe("created");
  db.exec("ROLLBACK");
  expect(await store.list({})).toEqual([]);
  expect(await store.add([{ queue: "mail", payload: null, uniqueKey: "k" }])).toMatchObject([{ outcome: "created" }]);
});

it("keeps unique keys within the transaction as it does without", async () => {
  const { store, db } = await open();
  await store.add([{ queue: "mail", payload: 1, uniqueKey: "k" }]);
  db.exec("BEGIN IMMEDIATE");
  const job = { queue: "mail", uniqueKey: "k" };
  const adding = store.add(
    [
      { ...job, payload: 2 },
      { ...job, payload: 3, onConflict: "replace" },
    ],
    { transaction: db },
  );
  db.exec("COMMIT");
  expect(await adding).toEqual([
    { id: "1", outcome: "existing" },
    { id: "1", outcome: "replaced" },
  ]);
  expect(await store.get("1")).toMatchObject({ payload: 3 });
});

it("adds all of its jobs or none, also if the caller commits in spite of the error", async () => {
  const { store, db } = await open();
  db.exec("CREATE TRIGGER two BEFORE INSERT ON sluice_jobs WHEN new.payload = '2' BEGIN SELECT RAISE(FAIL, 'no'); END");
  db.exec("BEGIN IMMEDIATE; INSERT INTO orders VALUES (1)");
  const adding = store.add(
    [1, 2].map((payload) => ({ queue: "mail", payload })),
    { transaction: db },
  );
  db.exec("COMMIT");
  await expect(adding).rejects.toThrow("no");
  expect(await store.list({})).toEqual([]);
  expect(db.prepare("SELECT count(*) AS n FROM orders").get()).toEqual({ n: 1 });
});

it("wakes the workers of this process when the transaction has committed in the same turn", async () => {
  const { store, db } = await open();
  const heard = new Promise<string>((resolve) => void store.onReady(resolve));
  db.exec("BEGIN IMMEDIATE");
  const adding = store.add([{ queue: "mail", payload: 1 }], { transaction: db });
  db.exec("COMMIT");
  await adding;
  const claimed = await store.claim({ queue: await heard, max: 1, leaseMs: 1_000, worker: "w" });
  expect(claimed).toMatchObject([{ queue: "mail", payload: 1 }]);
});

it("reads a handle that was opened for big integers and arrays as any other", async () => {
  const { store, path } = await open();
  const db = new DatabaseSync(path, { readBigInts: true, returnArrays: true });
  db.exec("BEGIN IMMEDIATE");
  const job = { queue: "mail", payload: 1, uniqueKey: "k" };
  const adding = store.add([job, job], { transaction: db });
  db.exec("COMMIT");
  expect(await adding).toMatchObject([{ id: "1" }, { id: "1", outcome: "existing" }]);
  db.close();
});

it("knows its file by any name", async () => {
  const { store, path } = await open();
  const link = `${path}-link`;
  symlinkSync(path, link);
  const db = new DatabaseSync(link);
  db.exec("BEGIN IMMEDIATE");
  const adding = store.add([{ queue: "mail", payload: 1 }], { transaction: db });
  db.exec("COMMIT");
  expect(await adding).toMatchObject([{ outcome: "created" }]);
  db.close();
});

it("refuses what is no transaction on its file", async () => {
  const { store, db } = await open();
  const add = (transaction: unknown): Promise<unknown> => store.add([{ queue: "mail", payload: 1 }], { transaction });
  await expect(add({})).rejects.toThrow("transaction must be a DatabaseSync, got object");
  await expect(add(db)).rejects.toThrow("inside BEGIN and COMMIT, got one outside");
  const other = new DatabaseSync(":memory:");
  other.exec("BEGIN");
  await expect(add(other)).rejects.toThrow("got one in memory");
  other.close();
  await expect(add(other)).rejects.toThrow("got one outside");
  const elsewhere = await open();
  elsewhere.db.exec("BEGIN IMMEDIATE");
  await elsewhere.store.add([{ queue: "mail", payload: 1 }], { transaction: elsewhere.db });
  await expect(add(elsewhere.db)).rejects.toThrow("the store's file, got");
  elsewhere.db.exec("ROLLBACK");
  expect(await store.list({})).toEqual([]);
});

it("takes none when it is in memory itself", async () => {
  const { db } = await open();
  const store = await SqliteStore.open({ path: ":memory:" });
  db.exec("BEGIN");
  const adding = store.add([{ queue: "mail", payload: 1 }], { transaction: db });
  await expect(adding).rejects.toThrow("transaction must be on :memory:");
  await store.close();
});

async function open(): Promise<{ readonly store: SqliteStore; readonly db: DatabaseSync; readonly path: string }> {
  const folder = mkdtempSync(join(tmpdir(), "sqlite-"));
  const path = join(folder, "jobs.db");
  const store = await SqliteStore.open({ path, durability: "normal", clock: new VirtualClock() });
  const db = new DatabaseSync(path);
  db.exec("CREATE TABLE orders (id)");
  onTestFinished(async () => {
    db.close();
    await store.close();
    rmSync(folder, { recursive: true });
  });
  return { store, db, path };
}
