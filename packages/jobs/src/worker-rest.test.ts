import { ClosedError, TimeoutError } from "sluice";
import { expect, it } from "vitest";
import type { Store } from "./store.ts";
import {
  add,
  clock,
  Desk,
  elsewhere,
  fail,
  faulty,
  gone,
  hang,
  LEASE_MS,
  QUEUE,
  start,
  states,
  store,
} from "./worker.stage.ts";
import { Worker } from "./worker.ts";

/** When, on the clock; undefined until then. */
function timeOf(promise: Promise<void>): { readonly at: number | undefined } {
  const seen: { at: number | undefined } = { at: undefined };
  void promise.then(() => (seen.at = clock.now()));
  return seen;
}

it("is idle when all that was ready has ended and is saved, though some is scheduled", async () => {
  const desk = new Desk();
  await add(1, 2, 3);
  await store.add([{ queue: QUEUE, payload: "later", delayMs: 60_000 }]);
  const worker = start(desk.handler, { concurrency: 2 });
  const idle = timeOf(worker.idle());
  await clock.advance(10);
  desk.ends[0]!.resolve(undefined);
  desk.ends[1]!.resolve(undefined);
  await clock.advance(10);
  expect(idle.at).toBeUndefined();
  desk.ends[2]!.resolve(undefined);
  await clock.advance(0);
  expect(idle.at).toBe(20);
  expect(await states()).toEqual(["succeeded", "succeeded", "succeeded", "scheduled"]);
});

it("has drained its queue when retries and delayed jobs have ended too, however they end", async () => {
  await add("fails for good");
  await store.add([{ queue: QUEUE, payload: "later", delayMs: 4_000 }]);
  const worker = start(({ payload }) => (payload === "later" ? undefined : fail()), { pollMs: Infinity });
  const [idle, drained] = [timeOf(worker.idle()), timeOf(worker.drain())];
  await clock.advance(60_000);
  expect([idle.at, drained.at]).toEqual([0, 4_000]); // retries at 500, 1_500 and 3_500
  expect(await states()).toEqual(["dead", "succeeded"]);
  const again = timeOf(worker.drain());
  await clock.advance(0);
  expect(again.at).toBe(60_000);
});

it("waits for what others run, and for what a dead process left", async () => {
  const desk = new Desk();
  await add("other's", "left");
  start(desk.handler, { concurrency: 1 });
  await clock.advance(0);
  start(() => hang(), {}, gone());
  await clock.advance(0);
  const worker = start(() => {}, { pollMs: Infinity }, elsewhere());
  const [idle, drained] = [timeOf(worker.idle()), timeOf(worker.drain())];
  await clock.advance(LEASE_MS);
  expect(idle.at).toBe(0);
  expect(await states()).toEqual(["running", "succeeded"]);
  desk.ends[0]!.resolve(undefined);
  await clock.advance(LEASE_MS);
  expect(drained.at).toBeGreaterThan(LEASE_MS);
});

it("looks before it says so, since it may not have heard of what was added last", async () => {
  const ran: unknown[] = [];
  const worker = start(({ payload }) => void ran.push(payload), { pollMs: Infinity }, elsewhere());
  await clock.advance(100);
  for (const wait of ["idle", "drain"] as const) {
    await add(wait);
    const rests = timeOf(worker[wait]());
    await clock.advance(0);
    expect([rests.at, ran.at(-1)]).toEqual([100, wait]);
  }
});

it("is neither while the store fails, and says so when it works again", async () => {
  let works = false;
  const or = <T>(act: () => Promise<T>): Promise<T> => (works ? act() : Promise.reject(new Error("disk full")));
  const claim: Store["claim"] = (request) => or(() => store.claim(request));
  const worker = start(() => {}, { pollMs: Infinity }, faulty({ claim }));
  const [idle, drained] = [timeOf(worker.idle()), timeOf(worker.drain())];
  await clock.advance(5_000);
  await expect(worker.idle({ timeoutMs: 0 })).rejects.toThrow(TimeoutError);
  expect([idle.at, drained.at]).toEqual([undefined, undefined]);
  works = true;
  await clock.advance(5_000);
  expect([idle.at, drained.at]).toEqual([expect.any(Number), idle.at]);
  await worker.drain({ timeoutMs: 0 });
});

it("waits for the start, and ends all waits with a stop", async () => {
  const worker = new Worker(store, QUEUE, () => {}, { clock });
  const early = timeOf(worker.idle());
  await clock.advance(10);
  expect(early.at).toBeUndefined();
  worker.start();
  await clock.advance(0);
  expect(early.at).toBe(10);
  await store.add([{ queue: QUEUE, payload: "later", delayMs: 60_000 }]);
  const drained = worker.drain();
  const stopped = worker.stop();
  await expect(drained).rejects.toThrow(ClosedError);
  await expect(worker.idle()).rejects.toThrow(ClosedError);
  await clock.advance(0);
  await stopped;
});

it("has drained its queue as soon as the last job is saved, not with the next look", async () => {
  const end = Promise.withResolvers<undefined>();
  await add(1);
  const drained = timeOf(start(() => end.promise).drain());
  await clock.advance(300);
  expect(drained.at).toBeUndefined();
  end.resolve(undefined);
  await clock.advance(1);
  expect(drained.at).toBe(300);
});
