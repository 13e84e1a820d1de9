import { TimeoutError } from "sluice";
import { VirtualClock } from "sluice/testing";
import { expect, it } from "vitest";
import type { Handler } from "./attempts.ts";
import { MemoryStore } from "./memory/memory-store.ts";
import { LeaseLostError, SETTLED } from "./outcome.ts";
import type { Store } from "./store.ts";
import {
  QUEUE,
  LEASE_MS,
  clock,
  store,
  workers,
  errors,
  start,
  add,
  Desk,
  faulty,
  elsewhere,
  gone,
  states,
  hang,
  stageWith,
} from "./worker.stage.ts";
import { Worker } from "./worker.ts";

it("F03.1: keeps a job that takes many leases, with one heartbeat for all", async () => {
  const desk = new Desk();
  const beats: number[] = [];
  const heartbeat: Store["heartbeat"] = (claims, leaseMs) => {
    beats.push(claims.length);
    return store.heartbeat(claims, leaseMs);
  };
  await add(1, 2, 3);
  start(desk.handler, {}, faulty({ heartbeat }));
  start(desk.handler);
  await clock.advance(LEASE_MS * 5);
  expect(desk.jobs.length).toBe(3);
  expect(new Set(beats)).toEqual(new Set([3]));
  expect(beats.length).toBeLessThanOrEqual(5 * (3 + 2)); // three by themselves and two before the sweeps in each lease
  for (const end of desk.ends) end.resolve(undefined);
  await clock.advance(0);
  expect(await states()).toEqual(["succeeded", "succeeded", "succeeded"]);
});

it("F03.1: keeps its jobs when the store's clock jumps by hours, and what it runs is not swept by itself", async () => {
  let jumpMs = 0;
  class Jumping extends VirtualClock {
    override wallNow(): number {
      return super.wallNow() + jumpMs;
    }
  }
  const jumping = new Jumping({ wallStartAt: Date.UTC(2030, 0, 1) });
  stageWith(new MemoryStore({ clock: jumping }), jumping);
  const desk = new Desk();
  await add(1);
  start(desk.handler);
  await clock.advance(10);
  for (const hours of [5, -5, 0]) {
    jumpMs = hours * 3_600_000;
    await store.add([{ queue: QUEUE, payload: "wakes it" }]);
    await clock.advance(LEASE_MS * 2);
  }
  expect(desk.contexts.map(({ signal }) => signal.aborted)).toEqual([false, false, false, false]);
  for (const end of desk.ends) end.resolve(undefined);
  await clock.advance(0);
  const jobs = await store.list({});
  expect(jobs.map(({ state, attempts, crashes }) => [state, attempts, crashes])).toEqual(
    Array.from({ length: 4 }, () => ["succeeded", 1, 0]),
  );
});

it("F03.1: of a worker that paused beyond its lease the handler is aborted and the outcome refused", async () => {
  const [paused, other] = [new Desk(), new Desk()];
  await add("charge the card");
  start(paused.handler, {}, gone());
  await clock.advance(0);
  start(other.handler, {}, elsewhere());
  await clock.advance(LEASE_MS * 2);
  expect([paused.jobs.length, other.jobs.length]).toEqual([1, 1]); // without fencing both would count
  expect(paused.contexts[0]?.signal.reason).toBeInstanceOf(LeaseLostError);
  paused.ends[0]!.resolve(undefined);
  await clock.advance(0);
  expect(await states()).toEqual(["running"]);
  expect(errors.map(([during, error]) => [during, (error as LeaseLostError).code])).toEqual([["settle", "LEASE_LOST"]]);
  other.ends[0]!.resolve(undefined);
  await clock.advance(0);
  expect(await store.list({})).toMatchObject([{ state: "succeeded", attempts: 2, crashes: 1 }]);
  expect(workers.map((worker) => worker.stats())).toMatchObject([
    { completed: 0, lost: 1 },
    { completed: 1, lost: 0 },
  ]);
});

it("F03.1: aborts the signal of a handler whose job the store says is lost, once", async () => {
  const desk = new Desk();
  await add(1);
  start(desk.handler, {}, faulty({ heartbeat: async (claims) => claims.map(() => false) }));
  await clock.advance(LEASE_MS / 3 - 1);
  const { signal } = desk.contexts[0]!;
  expect(signal.aborted).toBe(false);
  await clock.advance(1);
  expect(signal.reason).toBeInstanceOf(LeaseLostError);
  desk.ends[0]!.reject(signal.reason as Error);
  await clock.advance(0);
  expect(errors.map(([during]) => during)).toEqual(["settle"]);
  expect(await states()).toEqual(["running"]);
});

it("F03.2: a job that kills its worker takes every worker it is given, unless it is quarantined", async () => {
  for (const [maxCrashes, expected] of [
    [1_000, 8],
    [3, 3],
  ] as const) {
    await store.add([{ queue: QUEUE, payload: "kills", maxAttempts: 1_000 }]);
    let killed = 0;
    for (let process = 0; process < 8; process += 1) {
      start(() => ((killed += 1), hang()), { concurrency: 1 }, gone());
      await clock.advance(LEASE_MS);
      await store.sweep({ maxCrashes });
    }
    expect(killed).toBe(expected);
    expect(await states()).toEqual([maxCrashes === 3 ? "quarantined" : "ready"]);
    stageWith(new MemoryStore({ clock }));
  }
});

it("C182: runs attempt 2 within twice the lease of a worker that was killed", async () => {
  await add(1);
  await store.add([{ queue: QUEUE, payload: 2, maxAttempts: 1 }]);
  start(() => hang(), {}, gone());
  await clock.advance(0);
  await clock.advance(300);
  const at: [number, number][] = [];
  start(({ attempt }) => void at.push([clock.now(), attempt]), {}, elsewhere());
  await clock.advance(LEASE_MS * 2);
  expect(at).toEqual([[LEASE_MS, 2]]);
  expect(await store.list({})).toMatchObject([{ state: "succeeded" }, { state: "dead", reason: "the lease lapsed" }]);
});

it("C186: a hung job ends by its time limit, other queues go on, and what was not started stays claimable", async () => {
  const first = new Desk();
  const second: [number, unknown][] = [];
  await add("hung", "next");
  const hung = start(first.handler, { concurrency: 1, jobTimeoutMs: 60_000 });
  const others: number[] = [];
  const kindB = new Worker(store, "b", () => void others.push(clock.now()), { clock });
  workers.push(kindB);
  kindB.start();
  await clock.advance(0);
  start(({ payload }) => void second.push([clock.now(), payload]), { concurrency: 1 });
  for (let count = 0; count < 5; count += 1) {
    await store.add([{ queue: "b", payload: count }]);
    await clock.advance(10_000);
  }
  expect(others).toEqual([0, 10_000, 20_000, 30_000, 40_000]);
  expect(second).toEqual([[0, "next"]]);
  const { signal } = first.contexts[0]!;
  await clock.advance(9_999);
  expect([signal.aborted, hung.stats().running]).toEqual([false, 1]);
  await clock.advance(1);
  expect(signal.reason).toBeInstanceOf(TimeoutError);
  expect(signal.reason).toMatchObject({ timeoutMs: 60_000 });
  expect(hung.stats()).toMatchObject({ running: 0, failed: 1 });
  first.ends[0]!.reject(new Error("late, and nobody's business"));
  await clock.advance(500);
  expect(first.jobs.map(({ attempt }) => attempt)).toEqual([1, 2]); // in the slot that the first attempt left
  expect([errors, hung.stats().lost]).toEqual([[], 0]);
});

it("C186: gives each job its own time limit, with one timer for all", async () => {
  const desk = new Desk();
  const worker = start(desk.handler, { jobTimeoutMs: 100, leaseMs: 60_000, pollMs: Infinity });
  await clock.advance(0);
  const before = clock.timers;
  await add(1);
  await clock.advance(40);
  await add(2, 3);
  await clock.advance(0);
  expect(clock.timers - before).toBe(2); // one for the leases, one for the limits
  desk.ends[0]!.resolve(undefined);
  await clock.advance(99);
  expect(worker.stats()).toMatchObject({ running: 2, failed: 0 });
  await clock.advance(1);
  expect(worker.stats()).toMatchObject({ running: 0, failed: 2, completed: 1 });
});

const poison: Handler = async ({ payload }) => {
  if (payload === "poison") throw new Error("never works");
};

it("F01.4: a poison job that is put back in its place starves the rest, one with back-off and a dead letter doesn't", async () => {
  let runs = 0;
  await add("poison", 1, 2, 3);
  const inPlace = start(
    async (job, context) => {
      runs += 1;
      if (runs > 100) return hang<undefined>();
      try {
        await poison(job, context);
      } catch {
        await store.settle([{ id: job.id, token: job.token, kind: "release" }]);
        return SETTLED;
      }
      return undefined;
    },
    { concurrency: 1 },
  );
  await clock.advance(1_000);
  expect(inPlace.stats()).toMatchObject({ completed: 0 });
  expect(await states()).toEqual(["running", "ready", "ready", "ready"]);
  const stopped = inPlace.stop({ drainMs: 0, abortMs: 100 });
  await clock.advance(100);
  await stopped;

  start(poison, { concurrency: 1 });
  await clock.advance(0);
  expect(await states()).toEqual(["scheduled", "succeeded", "succeeded", "succeeded"]);
  await clock.advance(60_000);
  expect(await states()).toEqual(["dead", "succeeded", "succeeded", "succeeded"]);
});

it("aborts handlers whose leases could not be renewed until they lapsed, and gives back what ends of it", async () => {
  const desk = new Desk();
  const failure = new Error("no connection");
  await add(1);
  start(desk.handler, {}, faulty({ heartbeat: () => Promise.reject(failure), sweep: () => hang() }));
  await clock.advance(LEASE_MS - 1);
  expect(desk.contexts[0]?.signal.aborted).toBe(false);
  await clock.advance(1);
  const { reason } = desk.contexts[0]!.signal;
  expect(reason).toBeInstanceOf(LeaseLostError);
  desk.ends[0]!.reject(reason as Error);
  await clock.advance(0);
  expect(await store.list({})).toMatchObject([{ attempts: 1, crashes: 0, errors: [] }]);
  expect(desk.jobs.map(({ attempt }) => attempt)).toEqual([1, 1]);
  expect(errors).toEqual([1, 2, 3].map(() => ["heartbeat", failure]));
});
