/**
 * Jobs in one SQLite file, which may be the user's own and may be shared by several processes. Everything that writes
 * runs on a thread of its own, so that neither fsync nor another process's lock holds up the event loop. To read without
 * the thread, open the file with a `DatabaseSync` of your own and `readOnly: true`: a reader waits for no writer.
 *
 * Other processes' jobs are found by looking: `onReady` tells of what this store did, and of nothing else.
 */
import { resolve } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { setImmediate as afterThisTurn } from "node:timers/promises";
import { ClosedError, systemClock, type Clock } from "sluice";
import { register } from "sluice/internal";
import type { Added, Claim, ClaimedJob, JobRecord, Json, NewJob } from "../job.ts";
import { Listeners } from "../listeners.ts";
import type {
  ClaimRequest,
  JobFilter,
  Page,
  QueueStats,
  Redriven,
  Settlement,
  Store,
  StoreOptions,
  SweepOptions,
  Swept,
} from "../store.ts";
import {
  checkClaimRequest,
  checkFilter,
  checkHeartbeat,
  checkName,
  checkNarrowFilter,
  checkWhole,
  prepareJobs,
  prepareOptions,
  preparePage,
  prepareSettlements,
  prepareSweep,
} from "../validate.ts";
import { openInline, openThread, type Link } from "./link.ts";
import { isMemory, type Durability } from "./open.ts";
import type { Answers, Operation } from "./operation.ts";
import type { RecordRow } from "./operations/read.ts";
import { Outbox } from "./outbox.ts";
import { addWithin } from "./own-transaction.ts";

export interface SqliteStoreOptions extends StoreOptions {
  /** The file; it is made if it isn't there. `":memory:"` is a database of this store alone, without a thread. */
  readonly path: string;
  /**
   * `full`: what was acknowledged survives the loss of power. `normal`: a crash of the operating system or a loss of
   * power may take the operations of the last moments, whole and in order; a crash of the process takes nothing.
   * @default "full"
   */
  readonly durability?: Durability | undefined;
  /** Its wall time is the store's. @default systemClock */
  readonly clock?: Clock | undefined;
  /** Where the module is whose default export is a `ProcedureModule`, for `call`. */
  readonly procedures?: URL | string | undefined;
  /** Makes it visible to `sluice/observe`, and names its thread. @default "job store", not visible */
  readonly name?: string | undefined;
  /** `StoreBusyError` when another process keeps the file locked for this long. An integer >= 0. @default 10_000 */
  readonly busyTimeoutMs?: number | undefined;
}

const NAME = "job store";
const PRUNE_STEP = 1_000;
/** For `close`, when the thread doesn't come back: a procedure may never end. */
const CLOSE_LIMIT_MS = 10_000;

export class SqliteStore implements Store {
  readonly #path: string;
  readonly #clock: Clock;
  readonly #maxPayloadBytes: number;
  readonly #closing: Int32Array;
  readonly #link: Link;
  readonly #outbox: Outbox;
  readonly #listeners = new Listeners();
  #closed: Promise<void> | undefined;

  /**
   * Rejects with `StoreOpenError` where the file can't be made, read, written or understood; so does every operation once
   * the file or its log was removed or replaced.
   */
  static async open(options: SqliteStoreOptions): Promise<SqliteStore> {
    const { path, durability = "full", clock = systemClock, procedures, name } = options;
    if (typeof path !== "string" || path === "") throw new TypeError(`path must be a file name, got ${show(path)}`);
    if (durability !== "full" && durability !== "normal")
      throw new TypeError(`durability must be "full" or "normal", got ${show(durability)}`);
    const setup = {
      path: isMemory(path) ? path : resolve(path), // the process may change its folder
      durability,
      procedures: checkUrl(procedures),
      busyTimeoutMs: checkWhole("busyTimeoutMs", options.busyTimeoutMs ?? 10_000, 0),
      closing: new Int32Array(new SharedArrayBuffer(4)),
      ...prepareOptions(options),
    };
    const link = await clock.track(isMemory(path) ? openInline(setup, clock) : openThread(setup, name ?? NAME));
    return new SqliteStore(link, clock, name, setup);
  }

  private constructor(
    link: Link,
    clock: Clock,
    name: string | undefined,
    setup: { readonly path: string; readonly maxPayloadBytes: number; readonly closing: Int32Array },
  ) {
    this.#link = link;
    this.#clock = clock;
    this.#path = setup.path;
    this.#maxPayloadBytes = setup.maxPayloadBytes;
    this.#closing = setup.closing;
    this.#outbox = new Outbox(link, clock, this.#listeners);
    register("job-store", { name }, this.#outbox);
  }

  async now(): Promise<number> {
    this.#checkOpen();
    return this.#now();
  }

  async add(jobs: readonly NewJob[]): Promise<Added[]> {
    return this.#ask({ kind: "add", jobs: prepareJobs(jobs, this.#maxPayloadBytes) });
  }

  /**
   * As `add`, but on a handle of the caller's own on the same file and in its transaction: the jobs are there if and only
   * if that commits. All of it is done when this returns. What goes wrong is thrown here, so that the caller can still
   * roll back; if the caller commits all the same, none of these jobs is there. `TypeError` for what is no transaction
   * on this file, or a bad job; `RangeError` for a value out of range; `ClosedError`; and what SQLite says, above all that
   * others keep the file locked, unless the transaction was begun with BEGIN IMMEDIATE.
   *
   * Workers of this process hear of the jobs in the next turn, so commit in this one; if that comes later, they find
   * the jobs when they next poll. To write on the store's thread instead, and share its fsync, use a procedure (`call`).
   */
  addWithin(transaction: DatabaseSync, jobs: readonly NewJob[]): Added[] {
    this.#checkOpen();
    const prepared = prepareJobs(jobs, this.#maxPayloadBytes);
    const added = addWithin(transaction, this.#path, prepared, this.#now());
    void this.#clock.track(afterThisTurn()).then(() => this.#listeners.tell(prepared.map(({ queue }) => queue)));
    return added;
  }

  async claim(request: ClaimRequest): Promise<ClaimedJob[]> {
    checkClaimRequest(request);
    const { queue, max, leaseMs, worker } = request;
    const claimed = await this.#ask({ kind: "claim", request: { queue, max, leaseMs, worker } });
    return claimed.map((row) => ({
      id: String(row.id),
      token: row.token,
      queue,
      payload: parse(row.payload),
      attempt: row.attempt,
      maxAttempts: row.maxAttempts,
      addedAt: row.addedAt,
      runAt: row.runAt,
      leaseUntil: row.leaseUntil,
    }));
  }

  async settle(settlements: readonly Settlement[]): Promise<boolean[]> {
    const prepared = prepareSettlements(settlements, this.#maxPayloadBytes);
    return this.#ask({ kind: "settle", settlements: prepared });
  }

  async heartbeat(claims: readonly Claim[], leaseMs: number): Promise<boolean[]> {
    checkHeartbeat(claims, leaseMs);
    return this.#ask({ kind: "heartbeat", claims: claims.map(({ id, token }) => ({ id, token })), leaseMs });
  }

  async sweep(options: SweepOptions = {}): Promise<Swept> {
    const { ended, ...counts } = await this.#ask({ kind: "sweep", ...prepareSweep(options) });
    return { ...counts, ended: ended.map((job) => Object.assign(job, { payload: parse(job.payload) })) };
  }

  async nextAt(queue: string): Promise<number | undefined> {
    return this.#ask({ kind: "nextAt", queue: checkName("queue", queue) });
  }

  async get(id: string): Promise<JobRecord | undefined> {
    const found = await this.#ask({ kind: "get", id });
    return found === undefined ? undefined : toRecord(found);
  }

  async list(filter: JobFilter, page: Page = {}): Promise<JobRecord[]> {
    checkFilter(filter);
    const found = await this.#ask({ kind: "list", filter, ...preparePage(page) });
    return found.map(toRecord);
  }

  async stats(queue: string): Promise<QueueStats> {
    return this.#ask({ kind: "stats", queue: checkName("queue", queue) });
  }

  async redrive(filter: JobFilter): Promise<Redriven> {
    checkNarrowFilter(filter);
    return this.#ask({ kind: "redrive", filter });
  }

  async cancel(filter: JobFilter): Promise<number> {
    checkNarrowFilter(filter);
    return this.#ask({ kind: "cancel", filter });
  }

  /** In steps, each durable on its own, so that a long overdue one doesn't hold up everybody else. */
  async prune(): Promise<number> {
    let total = 0;
    for (let last = PRUNE_STEP; last === PRUNE_STEP; total += last)
      last = await this.#ask({ kind: "prune", max: PRUNE_STEP });
    return total;
  }

  /**
   * Runs a procedure of the module that the store was opened with, on the writer's thread. What it wrote is undone if it
   * throws, and this rejects with an error of the same name, message and plain fields. Don't change `input` before the
   * answer: it is copied when the batch goes out.
   */
  async call(name: string, input?: unknown): Promise<unknown> {
    return this.#ask({ kind: "call", name, input });
  }

  onReady(listener: (queue: string) => void): () => void {
    return this.#listeners.add(listener);
  }

  /**
   * If another process keeps the file locked, what is under way fails with `StoreBusyError` after half a second, and
   * what waits behind it after another. A thread that doesn't come back within 10 seconds is ended by force.
   */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    Atomics.store(this.#closing, 0, 1);
    const timer = this.#clock.setTimer(CLOSE_LIMIT_MS, { onTimer: () => void this.#link.kill() });
    try {
      await this.#outbox.idle();
      await this.#clock.track(this.#link.close());
    } finally {
      timer.cancel();
    }
  }

  async #ask<K extends Operation["kind"]>(operation: Extract<Operation, { readonly kind: K }>): Promise<Answers[K]> {
    this.#checkOpen();
    return this.#outbox.ask<K>(operation);
  }

  #checkOpen(): void {
    if (this.#closed !== undefined) throw new ClosedError(NAME);
  }

  #now(): number {
    return Math.floor(this.#clock.wallNow());
  }
}

function toRecord({ payload, result, ...rest }: RecordRow): JobRecord {
  return { ...rest, payload: parse(payload), result: result === undefined ? undefined : parse(result) };
}

function checkUrl(procedures: URL | string | undefined): string | undefined {
  if (procedures === undefined || URL.canParse(String(procedures))) return procedures?.toString();
  throw new TypeError(`procedures must be a URL, got ${show(procedures)}`);
}

function show(value: unknown): string {
  return JSON.stringify(value) ?? typeof value;
}

function parse(json: string): Json {
  return JSON.parse(json) as Json;
}
