/**
 * The driver seam: what a store must do so that jobs run at least once and no two attempts are both settled. Small and
 * unstable: a driver is tied to the minor version. Every driver passes the suite in `conformance/`.
 *
 * All operations take and give whole batches, and settle when what they did is durable. An operation that rejects has
 * changed nothing. Time is the store's own.
 */
import type { Added, Claim, ClaimedJob, JobRecord, JobState, Json, NewJob } from "./job.ts";

export interface Store {
  now(): Promise<number>;

  /** All of them or none. */
  add(jobs: readonly NewJob[], options?: AddOptions): Promise<Added[]>;

  /** Up to `max` ready jobs, in order of priority, due time and arrival, each with a lease of `leaseMs`. */
  claim(request: ClaimRequest): Promise<ClaimedJob[]>;

  /** One answer per settlement: false where the token is old or the job has ended, and then nothing has changed. */
  settle(settlements: readonly Settlement[]): Promise<boolean[]>;

  /** Leases start anew; false for each that is lost. */
  heartbeat(claims: readonly Claim[], leaseMs: number): Promise<boolean[]>;

  /** Takes back lapsed leases, each a crash: ready again, or dead, quarantined or closed as a duplicate. */
  sweep(options?: SweepOptions): Promise<Swept>;

  /** When the next job of the queue can be claimed or a lease in it lapses; undefined while there is none. */
  nextAt(queue: string): Promise<number | undefined>;

  get(id: string): Promise<JobRecord | undefined>;
  /** Oldest first. */
  list(filter: JobFilter, page?: Page): Promise<JobRecord[]>;
  stats(queue: string): Promise<QueueStats>;

  /** Dead, quarantined and cancelled jobs become ready with a fresh count of attempts; errors are kept. */
  redrive(filter: JobFilter): Promise<{ readonly redriven: number; readonly duplicates: number }>;
  /** Jobs that don't run yet; the number of those that were cancelled. */
  cancel(filter: JobFilter): Promise<number>;
  /** Removes ended jobs older than the store's retention. */
  prune(): Promise<number>;

  /** Called when jobs of a queue may have become ready by an act of this process. Returns how to stop that. */
  onReady(listener: (queue: string) => void): () => void;

  /** Idempotent; ends what is under way first. */
  close(): Promise<void>;
}

export interface AddOptions {
  /** The caller's own open transaction, where the driver has one: the jobs are there if and only if it commits. */
  readonly transaction?: unknown;
}

export interface ClaimRequest {
  readonly queue: string;
  /** An integer >= 1. */
  readonly max: number;
  readonly leaseMs: number;
  /** Who claims, for people who read the table. */
  readonly worker: string;
}

export type Settlement = Claim &
  (
    | { readonly kind: "complete"; readonly result?: Json | undefined }
    /** Without `retryInMs` the job is dead. */
    | { readonly kind: "fail"; readonly error: string; readonly retryInMs?: number | undefined }
    /** Later, without charging the attempt. */
    | { readonly kind: "snooze"; readonly delayMs: number; readonly reason?: string | undefined }
    /** Ready at once, without charging the attempt. */
    | { readonly kind: "release" }
  );

export interface SweepOptions {
  /** A job that crashed this often is quarantined, though attempts may be left. @default 3 */
  readonly maxCrashes?: number | undefined;
}

export interface Swept {
  readonly ready: number;
  readonly dead: number;
  readonly quarantined: number;
  /** Closed because a newer job holds its unique key. */
  readonly duplicates: number;
}

export interface JobFilter {
  readonly queue?: string | undefined;
  readonly states?: readonly JobState[] | undefined;
  readonly ids?: readonly string[] | undefined;
}

export interface Page {
  /** @default 100 */
  readonly limit?: number | undefined;
  /** The id of the last job of the page before. */
  readonly after?: string | undefined;
}

export interface QueueStats {
  readonly scheduled: number;
  readonly ready: number;
  readonly running: number;
  readonly dead: number;
  readonly quarantined: number;
  /** How long the longest ready job has been claimable; 0 while none is. */
  readonly oldestReadyMs: number;
}

export interface Retention {
  /** How long a succeeded or cancelled job stays; 0 removes it in the moment it ends. @default one day */
  readonly succeededMs?: number | undefined;
  /** How long a dead or quarantined job stays. @default Infinity */
  readonly deadMs?: number | undefined;
}
