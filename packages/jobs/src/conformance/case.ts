/** A case of the suite, and what it is run against. */
import type { VirtualClock } from "sluice/testing";
import type { Claim, ClaimedJob, JobRecord, NewJob } from "../job.ts";
import type { ClaimRequest, Settlement, Store, StoreOptions } from "../store.ts";

/** An empty store whose time is the clock's wall time. */
export interface OpenedStore {
  readonly store: Store;
  readonly clock: VirtualClock;
  /** Called once, also after a failure. */
  dispose(): Promise<void>;
}

export type OpenStore = (options: StoreOptions) => Promise<OpenedStore>;

export interface StoreCase {
  readonly title: string;
  /** Rejects if the driver fails the case. */
  readonly run: () => Promise<void>;
}

/** What has to be shown, by title. */
export type Facts = Readonly<Record<string, Fact | { readonly options: StoreOptions; readonly fact: Fact }>>;

type Fact = (opened: OpenedStore) => Promise<void>;

export const QUEUE = "mail";
export const LEASE_MS = 2_000;

export async function addOne(store: Store, job: Partial<NewJob> = {}): Promise<string> {
  const [added] = await store.add([{ queue: QUEUE, payload: null, ...job }]);
  if (added === undefined) throw new Error("add gave no answer");
  return added.id;
}

export function claim(store: Store, max: number, request: Partial<ClaimRequest> = {}): Promise<ClaimedJob[]> {
  return store.claim({ queue: QUEUE, leaseMs: LEASE_MS, worker: "conformance", max, ...request });
}

export async function claimOne(store: Store, request: Partial<ClaimRequest> = {}): Promise<ClaimedJob> {
  const [job] = await claim(store, 1, request);
  if (job === undefined) throw new Error("there is nothing to claim");
  return job;
}

export function complete(claims: readonly Claim[]): Settlement[] {
  return claims.map(({ id, token }) => ({ id, token, kind: "complete" }));
}

export async function read(store: Store, id: string): Promise<JobRecord> {
  const job = await store.get(id);
  if (job === undefined) throw new Error(`job ${id} is gone`);
  return job;
}

export async function payloads(jobs: Promise<readonly { readonly payload: unknown }[]>): Promise<unknown[]> {
  return (await jobs).map(({ payload }) => payload);
}
