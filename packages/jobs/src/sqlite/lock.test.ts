import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it, onTestFinished } from "vitest";
import { StoreBusyError } from "./errors.ts";
import { CLOSING_BUSY_MS, Lock, retryWhileBusy } from "./lock.ts";

it("begins as soon as the other process ends its transaction", () => {
  const [mine, other] = open();
  other.exec("BEGIN IMMEDIATE");
  let looks = 0;
  const isClosing = (): boolean => {
    looks += 1; // it looks after each try that failed
    if (looks === 3) other.exec("COMMIT");
    return false;
  };
  new Lock(mine, { busyTimeoutMs: 60_000, isClosing }).begin();
  expect(mine.isTransaction).toBe(true);
  expect(looks).toBe(3);
});

it("gives up after busyTimeoutMs, and leaves no transaction behind", () => {
  const [mine, other] = open();
  other.exec("BEGIN IMMEDIATE");
  const lock = new Lock(mine, { busyTimeoutMs: 20 });
  expect(() => lock.begin()).toThrow(StoreBusyError);
  expect(mine.isTransaction).toBe(false);
});

it("waits less while the store is being closed", () => {
  const [mine, other] = open();
  other.exec("BEGIN IMMEDIATE");
  let tries = 0;
  const options = { busyTimeoutMs: Infinity, isClosing: () => (tries += 1) > 2 };
  expect(() => new Lock(mine, options).begin()).toThrow(
    expect.objectContaining({ waitedMs: expect.closeTo(CLOSING_BUSY_MS, -2) }),
  );
});

it("passes on whatever is not about a lock, at once", () => {
  const fault = Object.assign(new Error("disk I/O error"), { errcode: 10 });
  const fail = (): never => {
    throw fault;
  };
  expect(() => retryWhileBusy(fail, { busyTimeoutMs: 60_000 })).toThrow(fault);
});

function open(): [DatabaseSync, DatabaseSync] {
  const folder = mkdtempSync(join(tmpdir(), "sqlite-"));
  const [mine, other] = [1, 2].map(() => new DatabaseSync(join(folder, "x.db"), { timeout: 0 })) as [
    DatabaseSync,
    DatabaseSync,
  ];
  other.exec("PRAGMA journal_mode = WAL");
  onTestFinished(() => {
    mine.close();
    other.close();
    rmSync(folder, { recursive: true });
  });
  return [mine, other];
}
