/** What the tests of the worker share: a store in memory, its clock, and handlers that are ended by hand. */
import { VirtualClock } from "sluice/testing";
import { afterEach, beforeEach, expect } from "vitest";
import type { Handler, Job } from "./attempts.ts";
import type { Json } from "./job.ts";
import { MemoryStore } from "./memory/memory-store.ts";
import type { JobContext } from "./run.ts";
import type { Store } from "./store.ts";
import type { WorkerErrorContext, WorkerOptions } from "./worker-options.ts";
import { Worker } from "./worker.ts";

export const QUEUE = "mail";
export const LEASE_MS = 2_000;

export let clock: VirtualClock;
export let store: MemoryStore;
export let workers: Worker[];
export let errors: [string, unknown][];

beforeEach(() => {
  clock = new VirtualClock({ wallStartAt: Date.UTC(2030, 0, 1) });
  store = new MemoryStore({ clock });
  workers = [];
  errors = [];
});

afterEach(async () => {
  const stopped = Promise.all(workers.map((worker) => worker.stop({ drainMs: 0, abortMs: 0 })));
  await clock.advance(1);
  await stopped;
  expect(clock.timers).toBe(0);
});

/** In place of what each test begins with. */
export function stageWith(other: MemoryStore, itsClock: VirtualClock = clock): void {
  clock = itsClock;
  store = other;
}

export function start(handler: Handler, options: WorkerOptions = {}, from: Store = store): Worker {
  const worker = new Worker(from, QUEUE, handler, { clock, leaseMs: LEASE_MS, random: () => 0.5, onError, ...options });
  workers.push(worker);
  worker.start();
  return worker;
}

function onError(error: unknown, { during }: WorkerErrorContext): void {
  errors.push([during, error]);
}

export function add(...payloads: Json[]): Promise<unknown> {
  return store.add(payloads.map((payload) => ({ queue: QUEUE, payload })));
}

/** Jobs as a handler met them, each ended by hand. */
export class Desk {
  readonly jobs: Job[] = [];
  readonly contexts: JobContext[] = [];
  readonly ends: PromiseWithResolvers<undefined>[] = [];

  readonly handler: Handler = (job, context) => {
    const end = Promise.withResolvers<undefined>();
    this.jobs.push(job);
    this.contexts.push(context);
    this.ends.push(end);
    return end.promise;
  };
}

/** The store, some of whose operations go wrong. */
export function faulty(faults: Partial<Store>): Store {
  return new Proxy<Store>(store, {
    get: (target, key: keyof Store) => faults[key] ?? target[key]?.bind(target as never),
  });
}

/** The store as another process has it: it doesn't hear of what is added here. */
export function elsewhere(faults: Partial<Store> = {}): Store {
  return faulty({ onReady: () => () => {}, ...faults });
}

/** The store as a process has it that claims once and is then killed, or paused. */
export function gone(faults: Partial<Store> = {}): Store {
  let claims = 0;
  const claim: Store["claim"] = (request) => ((claims += 1) === 1 ? store.claim(request) : hang());
  return elsewhere({ claim, heartbeat: () => hang(), sweep: () => hang(), ...faults });
}

export async function states(): Promise<string[]> {
  return (await store.list({})).map(({ state }) => state);
}

export const hang = <T>(): Promise<T> => new Promise(() => {});

export const fail = (): never => raise(new Error("broken"));

export function raise(error: unknown): never {
  throw error;
}

export function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}
