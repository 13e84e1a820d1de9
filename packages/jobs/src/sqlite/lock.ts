/**
 * The write lock of the file, shared with other processes. SQLite's own way to wait for it starves processes (one of
 * two got 15 % of the work or less in 11 of 18 measured runs), so that it is asked not to wait at all: between tries
 * we sleep for a random few milliseconds, and who has held it long while others wait leaves it alone for as long, 5 ms at most.
 */
import { randomInt } from "node:crypto";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { StoreBusyError } from "./errors.ts";

export interface BusyOptions {
  /** `StoreBusyError` when the lock could not be had for this long. */
  readonly busyTimeoutMs: number;
  /** Whether to wait no longer than `CLOSING_BUSY_MS` in all. */
  readonly isClosing?: (() => boolean) | undefined;
  /** Blocks for so many milliseconds. @default Atomics.wait */
  readonly pause?: ((ms: number) => void) | undefined;
}

export interface LockOptions extends BusyOptions {
  /** Monotonic, in milliseconds. */
  readonly now: () => number;
}

/** Of the first result code: the extended ones have it in their lowest byte. */
const SQLITE_BUSY = 5;
const MIN_PAUSE_MS = 1;
const MAX_PAUSE_MS = 5;
/** A shorter transaction leaves gaps enough: a try finds one of them before long. */
const LONG_MS = 2;
/** For so many transactions after the last that found the lock taken, others are taken to wait for it. */
const CONTENDED = 32;
export const CLOSING_BUSY_MS = 500;

export class Lock {
  readonly #options: LockOptions;
  readonly #begin: StatementSync;
  #contended = 0;
  #begunAt = 0;
  #endedAt = 0;

  constructor(db: DatabaseSync, options: LockOptions) {
    this.#options = options;
    this.#begin = db.prepare("BEGIN IMMEDIATE");
  }

  /** Begins a write transaction, as soon as others let it. Blocks the thread meanwhile. */
  begin(): void {
    if (this.#contended > 0) this.#rest();
    const tries = retryWhileBusy(() => this.#begin.run(), this.#options);
    if (tries > 0) this.#contended = CONTENDED;
    this.#begunAt = this.#options.now();
  }

  /** To be told of the end of the transaction. */
  ended(): void {
    this.#endedAt = this.#options.now();
  }

  /** Within the longest rest everybody who waits tries once. */
  #rest(): void {
    this.#contended -= 1;
    const heldMs = this.#endedAt - this.#begunAt;
    if (heldMs < LONG_MS) return;
    const { now, pause = block } = this.#options;
    const leftMs = Math.min(heldMs, MAX_PAUSE_MS) - (now() - this.#endedAt);
    if (leftMs > 0) pause(leftMs);
  }
}

/** Returns how often the file was busy. */
export function retryWhileBusy(action: () => void, { busyTimeoutMs, isClosing, pause = block }: BusyOptions): number {
  let waitedMs = 0;
  for (let tries = 0; ; tries += 1) {
    try {
      action();
      return tries;
    } catch (error) {
      if (!isBusy(error)) throw error;
      const limitMs = isClosing?.() === true ? Math.min(busyTimeoutMs, CLOSING_BUSY_MS) : busyTimeoutMs;
      if (waitedMs >= limitMs) throw new StoreBusyError(waitedMs);
      const pauseMs = randomInt(MIN_PAUSE_MS * 1_000, MAX_PAUSE_MS * 1_000) / 1_000;
      pause(pauseMs);
      waitedMs += pauseMs;
    }
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && "errcode" in error && (Number(error.errcode) & 0xff) === SQLITE_BUSY;
}

const never = new Int32Array(new SharedArrayBuffer(4));

function block(ms: number): void {
  Atomics.wait(never, 0, 0, ms);
}
