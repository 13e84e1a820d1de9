/**
 * The write lock of the file, shared with other processes. SQLite's own way to wait for it starves processes (one of
 * two got 15 % of the work or less in 11 of 18 measured runs), so that it is asked not to wait at all: between tries
 * we sleep for a random few milliseconds, and after a commit under contention as well, which makes all processes alike.
 */
import { randomInt } from "node:crypto";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { StoreBusyError } from "./errors.ts";

export interface LockOptions {
  /** `StoreBusyError` when the lock could not be had for this long. */
  readonly busyTimeoutMs: number;
  /** Whether to wait no longer than `CLOSING_BUSY_MS` in all. */
  readonly isClosing?: (() => boolean) | undefined;
}

/** Of the first result code: the extended ones have it in their lowest byte. */
const SQLITE_BUSY = 5;
const MIN_PAUSE_MS = 1;
const MAX_PAUSE_MS = 5;
/** For so many transactions after the last that found the lock taken, a pause comes before each. */
const CONTENDED = 32;
export const CLOSING_BUSY_MS = 500;

export class Lock {
  readonly #options: LockOptions;
  readonly #begin: StatementSync;
  #contended = 0;

  constructor(db: DatabaseSync, options: LockOptions) {
    this.#options = options;
    this.#begin = db.prepare("BEGIN IMMEDIATE");
  }

  /** Begins a write transaction, as soon as others let it. Blocks the thread meanwhile. */
  begin(): void {
    if (this.#contended > 0) {
      this.#contended -= 1;
      pause();
    }
    const tries = retryWhileBusy(() => this.#begin.run(), this.#options);
    if (tries > 0) this.#contended = CONTENDED;
  }
}

/** Returns how often the file was busy. */
export function retryWhileBusy(action: () => void, { busyTimeoutMs, isClosing }: LockOptions): number {
  let waitedMs = 0;
  for (let tries = 0; ; tries += 1) {
    try {
      action();
      return tries;
    } catch (error) {
      if (!isBusy(error)) throw error;
      const limitMs = isClosing?.() === true ? Math.min(busyTimeoutMs, CLOSING_BUSY_MS) : busyTimeoutMs;
      if (waitedMs >= limitMs) throw new StoreBusyError(waitedMs);
      waitedMs += pause();
    }
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && "errcode" in error && (Number(error.errcode) & 0xff) === SQLITE_BUSY;
}

const never = new Int32Array(new SharedArrayBuffer(4));

function pause(): number {
  const ms = randomInt(MIN_PAUSE_MS * 1_000, MAX_PAUSE_MS * 1_000) / 1_000;
  Atomics.wait(never, 0, 0, ms);
  return ms;
}
