/**
 * Synchronous operations of the user's own that run on the writer's thread, inside its transaction, so that what they
 * write and what they do to jobs commit together and share one fsync with everything else of the moment.
 *
 * A module of procedures is given to the store by URL and has one as its default export.
 */
import type { DatabaseSync } from "node:sqlite";
import type { Added, Claim, NewJob } from "../job.ts";
import type { Settlement } from "../store.ts";

export interface ProcedureModule {
  /** SQL, run once each and in order, in the transaction that records it. Frozen once released. */
  readonly migrations: readonly string[];
  /** Prepares statements once and returns the procedures by name. Called after the migrations. */
  prepare(db: DatabaseSync): Readonly<Record<string, Procedure>>;
}

/**
 * Input and output are copied between threads. What it wrote is undone if it throws, and the caller gets the error;
 * a promise can't be returned, and `jobs` can't be used after the end.
 */
// oxlint-disable-next-line typescript/no-explicit-any -- each procedure knows its own input
export type Procedure = (input: any, jobs: JobsInTransaction) => unknown;

export interface JobsInTransaction {
  /** The store's time of this transaction. */
  readonly now: number;
  add(jobs: readonly NewJob[]): Added[];
  settle(settlements: readonly Settlement[]): boolean[];
  /** Whether this claim can still settle its job: an attempt that lost its lease must not begin its effect. */
  holds(claim: Claim): boolean;
}
