/** A job as its users and its store see it. The moves between the states are the table in `states.ts`. */

/** `scheduled` becomes `ready` by the passing of time alone: no write moves it. */
export type JobState = "scheduled" | "ready" | "running" | "succeeded" | "dead" | "cancelled" | "quarantined";

/**
 * What JSON can say, at most 200 levels deep. A property that is undefined is left out and -0 comes back as 0; anything
 * else that JSON would change is refused.
 */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json | undefined };

export interface NewJob {
  /** 1 to 255 characters, none of them a control character. */
  readonly queue: string;
  readonly payload: Json;
  /** Not before `delayMs` from now on the store's clock. From 0 to 4.32e15, rounded up to whole milliseconds. @default 0 */
  readonly delayMs?: number | undefined;
  /** Not before this instant, in whole milliseconds since the Unix epoch, to 4.32e15; not together with `delayMs`. */
  readonly runAt?: number | undefined;
  /** Higher goes first, then due time, then arrival. An integer from -1000 to 1000. @default 0 */
  readonly priority?: number | undefined;
  /** Charged attempts after which a failure or a crash makes the job dead. An integer from 1 to 1,000,000. @default 4 */
  readonly maxAttempts?: number | undefined;
  /**
   * At most one job of a queue holds a key, while it is scheduled, ready or running, so also between two attempts. It is
   * free again when the job has ended. 1 to 255 characters, none of them a control character.
   */
  readonly uniqueKey?: string | undefined;
  /**
   * What happens when the key is taken: `keep` answers `existing`; `replace` gives a job that does not run yet the new
   * payload, time and priority and answers `replaced`, and keeps one that runs (`existing`). @default "keep"
   */
  readonly onConflict?: "keep" | "replace" | undefined;
}

export interface Added {
  /** Of the new job, or of the one that holds the key. */
  readonly id: string;
  readonly outcome: "created" | "existing" | "replaced";
}

/** One attempt's right to settle a job. A later claim has a greater token, and makes this one worthless. */
export interface Claim {
  readonly id: string;
  /** Grows with every claim in the store; users may hand it on as a fencing token. */
  readonly token: number;
}

export interface ClaimedJob extends Claim {
  readonly queue: string;
  readonly payload: Json;
  /** 1 for the first. Snoozed and released attempts are not counted. */
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly addedAt: number;
  readonly runAt: number;
  /** On the store's clock. */
  readonly leaseUntil: number;
}

export interface JobError {
  readonly at: number;
  readonly attempt: number;
  /** A crash is a lease that lapsed. */
  readonly kind: "failure" | "crash";
  readonly message: string;
}

/** A job that has ended without success, and is done again only if somebody redrives it. */
export interface DeadJob {
  readonly id: string;
  readonly queue: string;
  readonly payload: Json;
  /** `quarantined`: it has crashed too often. */
  readonly state: "dead" | "quarantined";
  /** Charged in all. */
  readonly attempts: number;
  /** The last error, or that its worker crashed. */
  readonly reason: string;
}

export interface JobRecord {
  /** Decimal digits; grows with arrival, and no store gives one twice. */
  readonly id: string;
  readonly queue: string;
  readonly state: JobState;
  readonly payload: Json;
  readonly priority: number;
  /** Charged so far, the running one included. */
  readonly attempts: number;
  readonly maxAttempts: number;
  readonly crashes: number;
  readonly uniqueKey: string | undefined;
  readonly addedAt: number;
  readonly runAt: number;
  readonly endedAt: number | undefined;
  /** Of the handler, once the job has succeeded. */
  readonly result: Json | undefined;
  /** All of them, oldest first. */
  readonly errors: readonly JobError[];
  /** Why it was snoozed last, or ended without success. */
  readonly reason: string | undefined;
}
