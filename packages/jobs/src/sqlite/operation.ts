/** What passes between the store and the thread that writes: plain data, a batch of operations one way, answers back. */
import type { Added, Claim } from "../job.ts";
import type { ClaimRequest, JobFilter, QueueStats, Redriven } from "../store.ts";
import type { PreparedJob, PreparedSettlement } from "../validate.ts";
import type { Failure } from "./failure.ts";
import type { ClaimedRow } from "./operations/claim.ts";
import type { SweptRows } from "./operations/lease.ts";
import type { RecordRow } from "./operations/read.ts";

export type Operation =
  | { readonly kind: "add"; readonly jobs: readonly PreparedJob[] }
  | { readonly kind: "claim"; readonly request: ClaimRequest }
  | { readonly kind: "settle"; readonly settlements: readonly PreparedSettlement[] }
  | { readonly kind: "heartbeat"; readonly claims: readonly Claim[]; readonly leaseMs: number }
  | { readonly kind: "sweep"; readonly queue: string | undefined; readonly maxCrashes: number }
  | { readonly kind: "redrive"; readonly filter: JobFilter }
  | { readonly kind: "cancel"; readonly filter: JobFilter }
  | { readonly kind: "prune"; readonly max: number }
  | { readonly kind: "call"; readonly name: string; readonly input: unknown }
  | Read;

/** These need no write lock. */
export type Read =
  | { readonly kind: "nextAt"; readonly queue: string }
  | { readonly kind: "get"; readonly id: string }
  | { readonly kind: "list"; readonly filter: JobFilter; readonly after: number; readonly limit: number }
  | { readonly kind: "stats"; readonly queue: string };

/** What each kind of operation answers. */
export interface Answers {
  readonly add: Added[];
  readonly claim: ClaimedRow[];
  readonly settle: boolean[];
  readonly heartbeat: boolean[];
  readonly sweep: SweptRows;
  readonly redrive: Redriven;
  readonly cancel: number;
  readonly prune: number;
  readonly call: unknown;
  readonly nextAt: number | undefined;
  readonly get: RecordRow | undefined;
  readonly list: RecordRow[];
  readonly stats: QueueStats;
}

export interface Batch {
  /** The store's time, in whole milliseconds since the Unix epoch. */
  readonly now: number;
  readonly operations: readonly Operation[];
}

export interface Reply {
  /** One for each operation, in order. */
  readonly answers: readonly Answer[];
  /** The queues in which jobs may have become ready. */
  readonly ready: ReadonlySet<string>;
}

export type Answer = { readonly value: unknown } | { readonly failure: Failure };
