/** One attempt at a job, from its claim until its outcome is saved or given up. */
import type { Claim, ClaimedJob } from "./job.ts";

/** What a handler is given beside the job. */
export interface JobContext {
  /** Aborts when the lease is lost, the time limit is over, or the worker is stopped; the reason says which. */
  readonly signal: AbortSignal;
  /** 1 for the first. */
  readonly attempt: number;
  /** Greater than that of any claim before: a fencing token for whatever can compare it. */
  readonly token: number;
  /** The job's id: the same for every attempt, so that whoever is asked twice can tell. */
  readonly idempotencyKey: string;
}

export class Run implements JobContext, Claim {
  readonly job: ClaimedJob;
  /** On the worker's clock. */
  readonly startedAt: number;
  /** When somebody else may have the job, on the worker's clock. */
  leaseEndsAt: number;
  /** The store has said that the job is somebody else's. */
  isLost = false;
  /** The handler's outcome no longer counts: it is known, or was decided without it. */
  isOver = false;
  /** With which the attempt failed. */
  error: unknown = undefined;
  #abort: AbortController | undefined;
  #reason: { readonly reason: unknown } | undefined;

  constructor(job: ClaimedJob, startedAt: number, leaseEndsAt: number) {
    this.job = job;
    this.startedAt = startedAt;
    this.leaseEndsAt = leaseEndsAt;
  }

  get id(): string {
    return this.job.id;
  }

  get token(): number {
    return this.job.token;
  }

  get attempt(): number {
    return this.job.attempt;
  }

  get idempotencyKey(): string {
    return this.job.id;
  }

  /** Made when it is asked for: most handlers of a fast queue never do, and it costs more than all the rest of a run. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#reason !== undefined) this.#abort.abort(this.#reason.reason);
    }
    return this.#abort.signal;
  }

  get isAborted(): boolean {
    return this.#reason !== undefined;
  }

  /** Only the first reason counts. */
  abort(reason: unknown): void {
    if (this.#reason !== undefined) return;
    this.#reason = { reason };
    this.#abort?.abort(reason);
  }
}
