import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it, onTestFinished } from "vitest";
import { StoreBusyError } from "./errors.ts";
import { CLOSING_BUSY_MS, Lock, retryWhileBusy, type LockOptions } from "./lock.ts";

it("begins as soon as the other process ends its transaction, having slept 1 to 5 ms between tries", () => {
  const { mine, other, time } = open();
  other.exec("BEGIN IMMEDIATE");
  const lock = new Lock(mine, {
    ...time,
    busyTimeoutMs: 60_000,
    isClosing: () => time.pauses.length === 3 && end(other),
  });
  lock.begin();
  expect(mine.isTransaction).toBe(true);
  expect(time.pauses.length).toBe(4);
  for (const ms of time.pauses) expect(ms >= 1 && ms <= 5).toBe(true);
});

it("gives up after busyTimeoutMs, and leaves no transaction behind", () => {
  const { mine, other, time } = open();
  other.exec("BEGIN IMMEDIATE");
  const lock = new Lock(mine, { ...time, busyTimeoutMs: 10_000 });
  expect(() => lock.begin()).toThrow(StoreBusyError);
  expect(time.now()).toBeCloseTo(10_000, -1);
  expect(mine.isTransaction).toBe(false);
});

it("waits less while the store is being closed", () => {
  const { mine, other, time } = open();
  other.exec("BEGIN IMMEDIATE");
  const lock = new Lock(mine, { ...time, busyTimeoutMs: 60_000, isClosing: () => time.pauses.length > 2 });
  expect(() => lock.begin()).toThrow(StoreBusyError);
  expect(time.now()).toBeCloseTo(CLOSING_BUSY_MS, -1);
});

it.each([
  ["as long as it has held it", 3, 3],
  ["5 ms at most", 400, 5],
  ["not at all after a short one", 1.9, 0],
])("leaves the file alone after a transaction, where others were met: %s", (_, heldMs, restMs) => {
  const { mine, other, time } = open();
  const lock = new Lock(mine, { ...time, busyTimeoutMs: 60_000, isClosing: () => end(other) });
  other.exec("BEGIN IMMEDIATE");
  lock.begin();
  hold(mine, lock, time, heldMs);
  time.pauses.length = 0;
  lock.begin();
  expect(time.pauses.map(Math.round)).toEqual(restMs === 0 ? [] : [restMs]);
});

it("counts what it had to wait for the next batch as part of its rest", () => {
  const { mine, other, time } = open();
  const lock = new Lock(mine, { ...time, busyTimeoutMs: 60_000, isClosing: () => end(other) });
  other.exec("BEGIN IMMEDIATE");
  lock.begin();
  hold(mine, lock, time, 4);
  time.pauses.length = 0;
  time.pass(3);
  lock.begin();
  expect(time.pauses.map(Math.round)).toEqual([1]);
});

it("never rests where no others are, nor long after it met them", () => {
  const { mine, other, time } = open();
  const lock = new Lock(mine, { ...time, busyTimeoutMs: 60_000, isClosing: () => end(other) });
  lock.begin();
  hold(mine, lock, time, 4);
  lock.begin();
  hold(mine, lock, time, 4);
  expect(time.pauses).toEqual([]);
  other.exec("BEGIN IMMEDIATE");
  for (let round = 0; round < 40; round += 1) {
    lock.begin();
    hold(mine, lock, time, 4);
  }
  time.pauses.length = 0;
  lock.begin();
  expect(time.pauses).toEqual([]);
});

it("passes on whatever is not about a lock, at once", () => {
  const fault = Object.assign(new Error("disk I/O error"), { errcode: 10 });
  const fail = (): never => {
    throw fault;
  };
  const { time } = open();
  expect(() => retryWhileBusy(fail, { ...time, busyTimeoutMs: 60_000 })).toThrow(fault);
  expect(time.pauses).toEqual([]);
});

interface Time extends Pick<LockOptions, "now" | "pause"> {
  readonly pauses: number[];
  readonly pass: (ms: number) => void;
}

function open(): { readonly mine: DatabaseSync; readonly other: DatabaseSync; readonly time: Time } {
  const folder = mkdtempSync(join(tmpdir(), "sqlite-"));
  const connect = (): DatabaseSync => new DatabaseSync(join(folder, "x.db"), { timeout: 0 });
  const [mine, other] = [connect(), connect()];
  other.exec("PRAGMA journal_mode = WAL");
  onTestFinished(() => {
    mine.close();
    other.close();
    rmSync(folder, { recursive: true });
  });
  const pauses: number[] = [];
  let now = 0;
  const pass = (ms: number): void => void (now += ms);
  const pause = (ms: number): void => {
    pauses.push(ms);
    pass(ms);
  };
  return { mine, other, time: { pauses, pass, pause, now: () => now } };
}

/** Asked after each try that failed. */
function end(other: DatabaseSync): false {
  if (other.isTransaction) other.exec("COMMIT");
  return false;
}

function hold(mine: DatabaseSync, lock: Lock, time: Time, ms: number): void {
  time.pass(ms);
  mine.exec("COMMIT");
  lock.ended();
}
