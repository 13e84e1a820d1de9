/** Runs batches of operations on one connection, each batch in one transaction. Synchronous; blocks its thread. */
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Retention } from "../store.ts";
import { parseId, prepareJobs, prepareSettlements } from "../validate.ts";
import { toFailure } from "./failure.ts";
import { guardFile } from "./file-guard.ts";
import { Lock, type LockOptions } from "./lock.ts";
import type { Answer, Batch, Operation, Reply } from "./operation.ts";
import { prepareAdd } from "./operations/add.ts";
import { prepareClaim } from "./operations/claim.ts";
import { prepareHeartbeat, prepareSweep } from "./operations/lease.ts";
import { prepareCancel, preparePrune, prepareRedrive } from "./operations/manage.ts";
import { prepareGet, prepareList, prepareNextAt, prepareStats } from "./operations/read.ts";
import { prepareHolds, prepareSettle } from "./operations/settle.ts";
import type { JobsInTransaction, ProcedureModule } from "./procedures.ts";
import { CANCELLED, DEAD, QUARANTINED, SUCCEEDED } from "./schema.ts";

export interface EngineOptions extends LockOptions {
  readonly retention: Required<{ [K in keyof Retention]: number }>;
  readonly maxPayloadBytes: number;
}

const READS: ReadonlySet<Operation["kind"]> = new Set(["nextAt", "get", "list", "stats"]);

export class Engine {
  // I1  between two batches no transaction is open
  // I2  an operation that failed has changed nothing, whatever else its batch did
  // I3  nothing is answered before it is durable, in the file that others see
  readonly #db: DatabaseSync;
  readonly #lock: Lock;
  readonly #checkFile: () => void;
  readonly #execute: (operation: Operation, now: number) => unknown;
  readonly #beginRead: StatementSync;
  readonly #commit: StatementSync;
  readonly #rollback: StatementSync;
  readonly #savepoint: StatementSync;
  readonly #release: StatementSync;
  readonly #undo: StatementSync;
  #ready = new Set<string>();

  constructor(db: DatabaseSync, options: EngineOptions, procedures?: ProcedureModule) {
    this.#db = db;
    this.#lock = new Lock(db, options);
    this.#checkFile = guardFile(db);
    this.#execute = prepareAll(db, options, procedures, (queue) => this.#ready.add(queue));
    this.#beginRead = db.prepare("BEGIN");
    this.#commit = db.prepare("COMMIT");
    this.#rollback = db.prepare("ROLLBACK");
    this.#savepoint = db.prepare("SAVEPOINT operation");
    this.#release = db.prepare("RELEASE operation");
    this.#undo = db.prepare("ROLLBACK TO operation");
  }

  /** Reads come after all writes of the batch, and need no write lock. */
  run({ now, operations }: Batch): Reply {
    this.#ready = new Set();
    const answers: Answer[] = Array.from({ length: operations.length });
    const numbered = [...operations.entries()];
    const writes = numbered.filter(([, { kind }]) => !READS.has(kind));
    const reads = writes.length === numbered.length ? [] : numbered.filter(([, { kind }]) => READS.has(kind));
    if (writes.length > 0) {
      this.#transact(() => this.#lock.begin(), writes, now, answers);
      this.#lock.ended();
    }
    if (reads.length > 0) this.#transact(() => this.#beginRead.run(), reads, now, answers);
    return { answers, ready: this.#ready };
  }

  close(): void {
    this.#db.close();
  }

  #transact(begin: () => void, operations: readonly [number, Operation][], now: number, answers: Answer[]): void {
    try {
      begin();
      for (const [index, operation] of operations) answers[index] = this.#attempt(operation, now);
      this.#commit.run();
      this.#checkFile();
    } catch (error) {
      if (this.#db.isTransaction) this.#rollback.run();
      const answer = { failure: toFailure(error) };
      for (const [index] of operations) answers[index] = answer;
    }
  }

  /** Throws only if the whole transaction is lost. */
  #attempt(operation: Operation, now: number): Answer {
    this.#savepoint.run();
    try {
      const value = this.#execute(operation, now);
      this.#release.run();
      return { value };
    } catch (error) {
      if (!this.#db.isTransaction) throw error; // the disk is full or broken, and SQLite has rolled back
      this.#undo.run();
      this.#release.run();
      return { failure: toFailure(error) };
    }
  }
}

function prepareAll(
  db: DatabaseSync,
  { retention, maxPayloadBytes }: EngineOptions,
  procedures: ProcedureModule | undefined,
  onReady: (queue: string) => void,
): (operation: Operation, now: number) => unknown {
  const { succeededMs, deadMs } = retention;
  const keepMs = { [SUCCEEDED]: succeededMs, [CANCELLED]: succeededMs, [DEAD]: deadMs, [QUARANTINED]: deadMs };
  const add = prepareAdd(db, onReady);
  const claim = prepareClaim(db);
  const settle = prepareSettle(db, keepMs, onReady);
  const heartbeat = prepareHeartbeat(db);
  const sweep = prepareSweep(db, keepMs, onReady);
  const redrive = prepareRedrive(db, onReady);
  const cancel = prepareCancel(db, keepMs);
  const prune = preparePrune(db, keepMs);
  const nextAt = prepareNextAt(db);
  const get = prepareGet(db);
  const list = prepareList(db);
  const stats = prepareStats(db);
  const holds = prepareHolds(db);
  const procedureOf = new Map(Object.entries(procedures?.prepare(db) ?? {}));

  const call = (name: string, input: unknown, now: number): unknown => {
    const procedure = procedureOf.get(name);
    if (procedure === undefined) {
      const known = [...procedureOf.keys()].join(", ") || "none";
      throw new RangeError(`name must be that of a procedure of this store (${known}), got ${JSON.stringify(name)}`);
    }
    let isOver = false;
    const within = <A extends unknown[], R>(act: (...args: A) => R) => {
      return (...args: A): R => {
        if (isOver) throw new TypeError(`jobs must not be used after the procedure ${name} has returned`);
        return act(...args);
      };
    };
    const jobs: JobsInTransaction = {
      now,
      add: within((given) => add(prepareJobs(given, maxPayloadBytes), now)),
      settle: within((given) => settle(prepareSettlements(given, maxPayloadBytes), now)),
      holds: within(({ id, token }) => holds(parseId(id) ?? 0, token)),
    };
    try {
      return checkOutput(name, procedure(input, jobs));
    } finally {
      isOver = true;
    }
  };

  return (operation, now) => {
    switch (operation.kind) {
      case "add":
        return add(operation.jobs, now);
      case "claim":
        return claim(operation.request, now);
      case "settle":
        return settle(operation.settlements, now);
      case "heartbeat":
        return heartbeat(operation.claims, operation.leaseMs, now);
      case "sweep":
        return sweep(operation.queue, operation.maxCrashes, now);
      case "redrive":
        return redrive(operation.filter, now);
      case "cancel":
        return cancel(operation.filter, now);
      case "prune":
        return prune(operation.max, now);
      case "call":
        return call(operation.name, operation.input, now);
      case "nextAt":
        return nextAt(operation.queue);
      case "get":
        return get(operation.id, now);
      case "list":
        return list(operation.filter, operation.after, operation.limit, now);
      case "stats":
        return stats(operation.queue, now);
      default:
        return operation satisfies never;
    }
  };
}

/** What can't be copied to the caller must fail before the commit, and alone. */
function checkOutput(name: string, output: unknown): unknown {
  const isThenable = typeof output === "object" && output !== null && "then" in output;
  if (!isThenable || typeof output.then !== "function") return structuredClone(output);
  // What becomes of it doesn't count any more; left alone, its rejection would end the thread.
  if (output instanceof Promise) output.catch(() => {});
  throw new TypeError(`the procedure ${name} must return a value, got a promise`);
}
