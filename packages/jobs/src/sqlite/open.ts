/** Opens a file as a store, and says plainly why it can't be one. */
import { existsSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { StoreBusyError, StoreOpenError } from "./errors.ts";
import { retryWhileBusy, type BusyOptions } from "./lock.ts";
import { migrate } from "./schema.ts";

export type Durability = "full" | "normal";

export interface OpenOptions extends BusyOptions {
  readonly path: string;
  readonly durability: Durability;
}

/** Several processes may do this at once on a file that isn't there yet. */
export function openDatabase(options: OpenOptions, procedures: readonly string[] | undefined): DatabaseSync {
  let db: DatabaseSync | undefined;
  try {
    db = new DatabaseSync(options.path, { timeout: 0 });
    configure(db, options);
    bringUpToDate(db, options, procedures);
    return db;
  } catch (error) {
    db?.close();
    throw new StoreOpenError(options.path, reasonOf(error, options.path), { cause: error });
  }
}

export function isMemory(path: string): boolean {
  return path === ":memory:";
}

function configure(db: DatabaseSync, options: OpenOptions): void {
  const { path, durability } = options;
  let mode: unknown;
  // SQLite asks for the whole file to change the mode, so that it can be busy even here.
  retryWhileBusy(() => (mode = db.prepare("PRAGMA journal_mode = WAL").get()?.["journal_mode"]), options);
  if (mode !== "wal" && !isMemory(path)) throw new Error(`its folder can't have a write-ahead log (${String(mode)})`);
  // What a savepoint needs to undo an operation would go to a temporary file from 64 KB on, page by page: with 100 jobs
  // in a batch that took a third of this thread's time.
  db.exec("PRAGMA temp_store = MEMORY");
  // fullfsync matters on macOS alone, where fsync leaves the data in the disk's cache.
  db.exec(durability === "full" ? "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON" : "PRAGMA synchronous = NORMAL");
}

function bringUpToDate(db: DatabaseSync, options: OpenOptions, procedures: readonly string[] | undefined): void {
  retryWhileBusy(() => db.exec("BEGIN IMMEDIATE"), options);
  try {
    migrate(db, procedures);
    db.exec("DELETE FROM sluice_meta WHERE FALSE"); // fails where the file may only be read, as BEGIN IMMEDIATE does not
    db.exec("COMMIT");
  } finally {
    if (db.isTransaction) db.exec("ROLLBACK");
  }
}

/** By SQLite's first result code. */
const REASONS: Readonly<Record<number, string>> = {
  8: "it can't be written to",
  10: "reading or writing failed",
  11: "its content is damaged",
  13: "the disk is full",
  26: "it is not an SQLite database",
};

function reasonOf(error: unknown, path: string): string {
  if (error instanceof StoreBusyError) return error.message;
  if (!(error instanceof Error)) return String(error);
  const code = "errcode" in error ? Number(error.errcode) & 0xff : 0;
  if (code === 14) return whyNoFile(path) ?? error.message;
  const reason = REASONS[code];
  return reason === undefined ? error.message : `${reason} (${error.message})`;
}

function whyNoFile(path: string): string | undefined {
  const folder = dirname(resolve(path));
  if (!existsSync(folder)) return `the folder ${folder} does not exist`;
  if (!statSync(folder).isDirectory()) return `${folder} is not a folder`;
  if (!existsSync(path)) return `no file can be made in ${folder}`;
  return statSync(path).isDirectory() ? "it is a folder" : "it can't be read or written";
}
