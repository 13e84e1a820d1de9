import { mkdtempSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { Database, DatabaseError } from "./database.ts";

it("gives a connection one statement at a time, and none that nobody waits for any more", async () => {
  const folder = mkdtempSync(join(tmpdir(), "database-"));
  const file = join(folder, "some.db");
  const lock = new DatabaseSync(file);
  lock.exec("CREATE TABLE thing (name TEXT); BEGIN EXCLUSIVE");
  const database = new Database(file, { busyMs: 10_000 });
  const leave = new AbortController();
  const held = database.all("SELECT count(*) AS count FROM thing", []);
  const wait = database.all("INSERT INTO thing VALUES ('chair') RETURNING name", [], { signal: leave.signal });
  const last = database.all("SELECT count(*) AS count FROM thing", []);
  leave.abort(new Error("gone"));
  await expect(wait).rejects.toThrow("gone");
  expect(database.queries).toBe(1);
  lock.close();
  expect([await held, await last, database.queries]).toEqual([[{ count: 0 }], [{ count: 0 }], 2]);
  await database.close();
  rmSync(folder, { recursive: true });
});

it("says what the database says against a statement, and goes on", async () => {
  const database = new Database(":memory:");
  await expect(database.all("SELECT * FROM chairs", [])).rejects.toThrow(new DatabaseError("no such table: chairs"));
  expect(await database.all("SELECT ? AS one", [1])).toEqual([{ one: 1 }]);
  await database.close();
});
