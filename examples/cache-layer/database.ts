/**
 * One connection to a SQLite database, on a thread of its own: a query keeps other queries of the connection waiting, and
 * nobody else. What is no longer wanted leaves the line.
 */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { Limiter, type WaitOptions } from "sluice";

export type Value = string | number | null;
export type Row = Readonly<Record<string, unknown>>;

export interface Setup {
  readonly path: string;
  /** How long a statement waits for the lock of another connection. */
  readonly busyMs: number;
}

export interface Question {
  readonly sql: string;
  readonly values: readonly Value[];
}

export type Answer = { readonly rows: readonly Row[]; readonly failure?: undefined } | { readonly failure: string };

export class DatabaseError extends Error {
  override readonly name = "DatabaseError";
}

export class Database {
  readonly #thread: Worker;
  readonly #line = new Limiter(1, { capacity: 1_000 });
  #queries = 0;

  constructor(path: string, { busyMs = 0 }: { readonly busyMs?: number } = {}) {
    const setup: Setup = { path, busyMs };
    this.#thread = new Worker(new URL("database-thread.ts", import.meta.url), { workerData: setup });
  }

  /** Statements that the database was given. */
  get queries(): number {
    return this.#queries;
  }

  /** A signal ends the wait for the connection; a statement that runs already is SQLite's, and ends by itself. */
  all(sql: string, values: readonly Value[], options?: WaitOptions): Promise<readonly Row[]> {
    return this.#line.run(() => this.#ask({ sql, values }), options);
  }

  async close(): Promise<void> {
    this.#line.close();
    await this.#line.drain();
    const end = once(this.#thread, "exit");
    this.#thread.postMessage(undefined);
    await end;
  }

  async #ask(question: Question): Promise<readonly Row[]> {
    const reply = once(this.#thread, "message"); // one at a time, so it is the answer to this
    this.#queries += 1;
    this.#thread.postMessage(question);
    const [answer] = (await reply) as [Answer];
    if (answer.failure !== undefined) throw new DatabaseError(answer.failure);
    return answer.rows;
  }
}
