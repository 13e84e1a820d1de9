/** A job as the memory store keeps it. */
import type { Heap, HeapNode } from "sluice/internal";
import type { ClaimedJob, DeadJob, JobError, JobRecord, JobState, Json } from "../job.ts";
import type { PreparedJob } from "../validate.ts";

export type EndState = Exclude<JobState, "scheduled" | "ready" | "running">;

export interface Entry extends HeapNode {
  /** Its id, and the order of arrival. */
  readonly number: number;
  readonly queue: string;
  /** Where it lies, if it has not ended. */
  heap: Heap<Entry> | undefined;
  /** `pending` is scheduled or ready: which of them, the time says. */
  state: "pending" | "running" | EndState;
  /** JSON, so that nobody can change it from outside. */
  payload: string;
  priority: number;
  readonly maxAttempts: number;
  readonly uniqueKey: string | undefined;
  readonly addedAt: number;
  runAt: number;
  attempts: number;
  crashes: number;
  /** Of its latest claim. */
  token: number;
  leaseUntil: number;
  endedAt: number | undefined;
  /** JSON. */
  result: string | undefined;
  readonly errors: JobError[];
  reason: string | undefined;
}

export function newEntry(number: number, job: PreparedJob, now: number): Entry {
  const { queue, payload, priority, maxAttempts, uniqueKey } = job;
  return {
    slot: -1,
    heap: undefined,
    number,
    queue,
    state: "pending",
    payload,
    priority,
    maxAttempts,
    uniqueKey,
    addedAt: now,
    runAt: now,
    attempts: 0,
    crashes: 0,
    token: 0,
    leaseUntil: 0,
    endedAt: undefined,
    result: undefined,
    errors: [],
    reason: undefined,
  };
}

export function stateOf({ state, runAt }: Entry, now: number): JobState {
  if (state !== "pending") return state;
  return runAt > now ? "scheduled" : "ready";
}

export function toClaimed(entry: Entry): ClaimedJob {
  const { number, token, queue, payload, attempts, maxAttempts, addedAt, runAt, leaseUntil } = entry;
  const json = JSON.parse(payload) as Json;
  return {
    id: String(number),
    token,
    queue,
    payload: json,
    attempt: attempts,
    maxAttempts,
    addedAt,
    runAt,
    leaseUntil,
  };
}

export function toDead(entry: Entry, state: DeadJob["state"]): DeadJob {
  const { number, queue, payload, attempts, reason = "" } = entry;
  return { id: String(number), queue, payload: JSON.parse(payload) as Json, state, attempts, reason };
}

export function toRecord(entry: Entry, now: number): JobRecord {
  const { number, queue, priority, attempts, maxAttempts, crashes, uniqueKey, addedAt, runAt, endedAt, reason } = entry;
  return {
    id: String(number),
    queue,
    state: stateOf(entry, now),
    payload: JSON.parse(entry.payload) as Json,
    priority,
    attempts,
    maxAttempts,
    crashes,
    uniqueKey,
    addedAt,
    runAt,
    endedAt,
    result: entry.result === undefined ? undefined : (JSON.parse(entry.result) as Json),
    errors: [...entry.errors],
    reason,
  };
}
