/**
 * The driver seam: what a store must do so that jobs run at least once and no two attempts are both settled. Small and
 * unstable: a driver is tied to the minor version. Every driver passes the suite in `conformance/`.
 *
 * All operations take and give whole batches, and settle when what they did is durable. None may hang for good: a driver
 * that asks over a network must give up and reject, since nobody asks again before it has answered. An operation that
 * rejects has changed nothing; what is wrong with its input, `validate.ts` says for all drivers alike. Time is the
 * store's own, in whole milliseconds; delays are rounded up.
 *
 * The rules that every driver keeps:
 *
 * - **Order.** A claim takes ready jobs by priority (highest first), then `runAt`, then arrival.
 * - **Attempts** are charged when a job is claimed. Snooze and release give the charge back; a crash doesn't.
 * - **Lease.** It has lapsed from the instant `leaseUntil` on. Only `sweep` takes a lapsed job back. Until then its
 *   holder may still settle it or revive the lease, because nobody else has the job; from then on its token is old.
 * - **Place in line.** A job that is released or crashed keeps its `runAt`, and with it its place.
 * - **Unique keys.** A job holds its key while it is scheduled, ready, or running under a lease that has not lapsed. If
 *   the lease has lapsed, `add` gives the key to the new job. The one that lost its key can't have its lease revived. It
 *   can still succeed or die; what would put it back in line (retry, snooze, release, crash) gives it the key if nobody
 *   has it by then, and else closes it as a duplicate (`cancelled`). Only `add` takes a key from a lapsed job.
 */
import type { Added, Claim, ClaimedJob, DeadJob, JobRecord, JobState, Json, NewJob } from "./job.ts";

export interface Store {
  now(): Promise<number>;

  /** All of them or none; each sees those before it in the batch. */
  add(jobs: readonly NewJob[]): Promise<Added[]>;

  /**
   * Where the driver's transactions are synchronous: as `add`, within a transaction that the caller has begun. All of it
   * is done when this returns; what goes wrong is thrown here, while the caller can still roll back. The jobs are there
   * if and only if the caller commits.
   */
  addWithin?(transaction: unknown, jobs: readonly NewJob[]): Added[];

  /** Up to `max` ready jobs, first in line first, each with a lease of `leaseMs` and a token greater than any before. */
  claim(request: ClaimRequest): Promise<ClaimedJob[]>;

  /**
   * In order; one answer each: false where the token is old or the job has ended, and then nothing has changed. A job
   * that fails with its attempts used up is dead, whatever the settlement wishes.
   */
  settle(settlements: readonly Settlement[]): Promise<boolean[]>;

  /** Leases start anew; false for each that is lost. */
  heartbeat(claims: readonly Claim[], leaseMs: number): Promise<boolean[]>;

  /**
   * Takes back lapsed leases, each a crash, which is kept among the job's errors: quarantined at `maxCrashes`, else dead
   * if its attempts are used up, else closed as a duplicate if another job has taken its key, else ready again. Newest
   * first: of several jobs that lost one key, the newest gets it back.
   */
  sweep(options?: SweepOptions): Promise<Swept>;

  /**
   * When the next job of the queue can be claimed or a lease in it lapses: an instant not after the present if one
   * can or has, undefined if there is nothing to wait for.
   */
  nextAt(queue: string): Promise<number | undefined>;

  get(id: string): Promise<JobRecord | undefined>;
  /** Oldest first. */
  list(filter: JobFilter, page?: Page): Promise<JobRecord[]>;
  stats(queue: string): Promise<QueueStats>;

  /**
   * Dead, quarantined and cancelled jobs become ready, due now, with fresh counts of attempts and crashes; errors are
   * kept. Oldest first; one whose unique key is taken stays as it is and is counted.
   */
  redrive(filter: JobFilter): Promise<Redriven>;
  /** Jobs that don't run yet; the number of those that were cancelled. */
  cancel(filter: JobFilter): Promise<number>;
  /** Removes jobs that ended at least the store's retention ago; their number. */
  prune(): Promise<number>;

  /**
   * Called when an act of this process may have moved `nextAt` of a queue forward: jobs were added, put back or
   * redriven. It may be called for nothing. What a listener throws is an unhandled rejection and harms no operation.
   * Returns how to stop.
   */
  onReady(listener: (queue: string) => void): () => void;

  /** Idempotent; ends what is under way first. Every other operation then rejects with `ClosedError`. */
  close(): Promise<void>;
}

export interface ClaimRequest {
  readonly queue: string;
  /** An integer >= 1. */
  readonly max: number;
  /** An integer from 1 to 4.32e15. */
  readonly leaseMs: number;
  /** Who claims, for people who read the table. */
  readonly worker: string;
}

export type Settlement = Claim &
  (
    | { readonly kind: "complete"; readonly result?: Json | undefined }
    /** Without `retryInMs` (from 0 to 4.32e15) the job is dead, for the reason `error`. */
    | { readonly kind: "fail"; readonly error: string; readonly retryInMs?: number | undefined }
    /** Later (in 0 to 4.32e15 ms), without charging the attempt. */
    | { readonly kind: "snooze"; readonly delayMs: number; readonly reason?: string | undefined }
    /** Ready at once, in its old place, without charging the attempt. */
    | { readonly kind: "release" }
  );

export interface SweepOptions {
  /** Only this queue. */
  readonly queue?: string | undefined;
  /** A job that crashed this often is quarantined, though attempts may be left. An integer >= 1. @default 3 */
  readonly maxCrashes?: number | undefined;
}

export interface Swept {
  readonly ready: number;
  readonly dead: number;
  readonly quarantined: number;
  /** Closed because a newer job holds its unique key. */
  readonly duplicates: number;
  /** The dead and the quarantined ones, newest first in each queue. */
  readonly ended: readonly DeadJob[];
}

export interface Redriven {
  readonly redriven: number;
  /** Left as they were, because another job holds their unique key. */
  readonly duplicates: number;
}

/** All that are given must hold; an empty list matches nothing. `redrive` and `cancel` want at least one of them. */
export interface JobFilter {
  readonly queue?: string | undefined;
  readonly states?: readonly JobState[] | undefined;
  readonly ids?: readonly string[] | undefined;
}

export interface Page {
  /** An integer from 1 to 1000. @default 100 */
  readonly limit?: number | undefined;
  /** The id of the last job of the page before, even if that job is gone by now. */
  readonly after?: string | undefined;
}

export interface QueueStats {
  readonly scheduled: number;
  readonly ready: number;
  readonly running: number;
  readonly dead: number;
  readonly quarantined: number;
  /** How long the ready job with the earliest `runAt` has been due; 0 while none is ready. */
  readonly oldestReadyMs: number;
}

/** The least: what is over it is removed by `prune`, which every worker calls at its start and every ten minutes. */
export interface Retention {
  /** How long a succeeded or cancelled job stays; 0 removes it in the moment it ends. Up to `Infinity`. @default one day */
  readonly succeededMs?: number | undefined;
  /** How long a dead or quarantined job stays; 0 removes it in the moment it ends. @default Infinity */
  readonly deadMs?: number | undefined;
}

/** What drivers have in common. */
export interface StoreOptions {
  readonly retention?: Retention | undefined;
  /** Of one payload or result, as JSON in UTF-8. An integer >= 1. @default 1_048_576 */
  readonly maxPayloadBytes?: number | undefined;
}
