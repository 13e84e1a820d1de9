import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { isMainThread } from "node:worker_threads";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { StoreOpenError } from "./errors.ts";
import { openDatabase } from "./open.ts";

const OPTIONS = { durability: "full", busyTimeoutMs: 0 } as const;

it("makes a file that has what schema.sql says, and nothing else", () => {
  const db = openDatabase({ ...OPTIONS, path: temporaryFile() }, undefined);
  const made = db.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name <> 'sqlite_sequence'").all();
  db.close();
  const dump = made
    .map(({ sql }) => `${String(sql).replaceAll("\n    ", "\n  ").replace("\n  )", "\n)")};\n`)
    .join("\n");
  expect(dump).toBe(readFileSync(join(import.meta.dirname, "schema.sql"), "utf8"));
});

it("keeps in memory what an operation may have to undo", () => {
  const db = openDatabase({ ...OPTIONS, path: temporaryFile() }, undefined);
  expect(db.prepare("PRAGMA temp_store").get()).toEqual({ temp_store: 2 });
  db.close();
});

it("leaves a file alone that is up to date", () => {
  const path = temporaryFile();
  openDatabase({ ...OPTIONS, path }, undefined).close();
  const before = readFileSync(path);
  openDatabase({ ...OPTIONS, path }, undefined).close();
  expect(readFileSync(path).equals(before)).toBe(true);
});

it("refuses a file that newer code has made, and changes nothing in it", () => {
  const path = temporaryFile();
  const newer = openDatabase({ ...OPTIONS, path }, undefined);
  newer.exec("UPDATE sluice_meta SET value = 999 WHERE name = 'schema'");
  newer.close();
  expect(() => openDatabase({ ...OPTIONS, path }, undefined)).toThrow(
    expect.objectContaining({ code: "STORE_OPEN", reason: expect.stringContaining("version 999, made by newer code") }),
  );
  const db = new DatabaseSync(path);
  expect(db.prepare("SELECT value FROM sluice_meta WHERE name = 'schema'").get()).toEqual({ value: 999 });
  db.close();
});

it("runs each migration of the procedures once, in order, and knows one that has been there before", () => {
  const path = temporaryFile();
  openDatabase({ ...OPTIONS, path }, ["CREATE TABLE mine (a)"]).close();
  openDatabase({ ...OPTIONS, path }, ["CREATE TABLE mine (a)", "ALTER TABLE mine ADD b"]).close();
  openDatabase({ ...OPTIONS, path }, undefined).close(); // a tool without the procedures may open it
  const db = openDatabase({ ...OPTIONS, path }, ["CREATE TABLE mine (a)", "ALTER TABLE mine ADD b"]);
  expect(db.prepare("SELECT a, b FROM mine").all()).toEqual([]);
  db.close();
  expect(() => openDatabase({ ...OPTIONS, path }, ["CREATE TABLE mine (a)"])).toThrow("procedures has version 2");
});

it("undoes all of a migration that fails, its own tables included", () => {
  const path = temporaryFile();
  expect(() => openDatabase({ ...OPTIONS, path }, ["CREATE TABLE mine (a)", "nonsense"])).toThrow(StoreOpenError);
  const db = new DatabaseSync(path);
  expect(db.prepare("SELECT name FROM sqlite_schema").all()).toEqual([]);
  db.close();
});

it("shares a file with tables of the user's own", () => {
  const path = temporaryFile();
  const own = new DatabaseSync(path);
  own.exec("PRAGMA user_version = 7; CREATE TABLE orders (id)");
  own.close();
  const db = openDatabase({ ...OPTIONS, path }, undefined);
  expect(db.prepare("PRAGMA user_version").get()).toEqual({ user_version: 7 });
  expect(db.prepare("SELECT * FROM orders").all()).toEqual([]);
  db.close();
});

it.each([
  ["full", 2],
  ["normal", 1],
] as const)("asks SQLite for %s durability, on a write-ahead log", (durability, synchronous) => {
  const db = openDatabase({ path: temporaryFile(), durability, busyTimeoutMs: 0 }, undefined);
  expect(db.prepare("PRAGMA synchronous").get()).toEqual({ synchronous });
  expect(db.prepare("PRAGMA journal_mode").get()).toEqual({ journal_mode: "wal" });
  db.close();
});

it("says that the file is a folder", () => {
  const path = temporaryFile();
  mkdirSync(path);
  expect(reason(path)).toBe("it is a folder");
});

it("says that the folder is missing, or is none", () => {
  const path = temporaryFile();
  expect(reason(join(path, "jobs.db"))).toBe(`the folder ${path} does not exist`);
  writeFileSync(path, "");
  expect(reason(join(path, "jobs.db"))).toBe(`${path} is not a folder`);
});

it("says that the file is not a database, and leaves it as it is", () => {
  const path = temporaryFile();
  const text = "Dear diary, ".repeat(500);
  writeFileSync(path, text);
  expect(reason(path)).toContain("it is not an SQLite database");
  expect(readFileSync(path, "utf8")).toBe(text);
});

it("says that the content is damaged", () => {
  const path = temporaryFile();
  openDatabase({ ...OPTIONS, path }, undefined).close();
  const bytes = readFileSync(path);
  bytes.fill(0xff, 100, 4_096); // the schema, behind the header
  writeFileSync(path, bytes);
  expect(reason(path)).toContain("its content is damaged");
});

it("says that others keep the file locked", () => {
  const path = temporaryFile();
  const other = new DatabaseSync(path);
  other.exec("BEGIN EXCLUSIVE; CREATE TABLE t (a)");
  expect(reason(path)).toContain("others have kept the file locked");
  other.close();
});

// Root may write anywhere, and only the main thread of a process can be somebody else for a while.
const isRoot = process.geteuid?.() === 0;

describe.skipIf(isRoot && !isMainThread)("without permission", () => {
  beforeEach(() => {
    if (isRoot) process.seteuid?.(65_534);
    return () => {
      if (isRoot) process.seteuid?.(0);
    };
  });

  it("says that no file can be made in the folder", () => {
    const path = temporaryFile();
    const folder = dirname(path);
    chmodSync(folder, 0o555);
    onTestFinished(() => chmodSync(folder, 0o755));
    expect(reason(path)).toBe(`no file can be made in ${folder}`);
  });

  it.each([
    [0o444, "it can't be written to"],
    [0o000, "it can't be read or written"],
  ])("says what may not be done to a file of mode %o", (mode, expected) => {
    const path = temporaryFile();
    openDatabase({ ...OPTIONS, path }, undefined).close();
    chmodSync(path, mode);
    expect(reason(path)).toContain(expected);
  });
});

function reason(path: string): string {
  try {
    openDatabase({ ...OPTIONS, path }, undefined).close();
  } catch (error) {
    expect(error).toBeInstanceOf(StoreOpenError);
    expect(error).toMatchObject({ path, cause: expect.any(Error) });
    return (error as StoreOpenError).reason;
  }
  throw new Error("it could be opened");
}

function temporaryFile(): string {
  const folder = mkdtempSync(join(tmpdir(), "sqlite-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return join(folder, "jobs.db");
}
