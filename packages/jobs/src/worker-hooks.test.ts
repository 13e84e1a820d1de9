import { TimeoutError } from "sluice";
import { expect, it } from "vitest";
import type { DeadJob } from "./job.ts";
import { MemoryStore } from "./memory/memory-store.ts";
import { SETTLED, snooze, UnrecoverableError } from "./outcome.ts";
import type { AttemptFailure } from "./worker-options.ts";
import {
  add,
  clock,
  elsewhere,
  errors,
  faulty,
  gone,
  hang,
  LEASE_MS,
  QUEUE,
  stageWith,
  start,
  store,
} from "./worker.stage.ts";
import { Worker } from "./worker.ts";

it("tells of each failed attempt with its error, of a death once, and of both only when they are saved", async () => {
  const failures: [unknown, number, number | undefined][] = [];
  const dead: DeadJob[] = [];
  const onFailure = (error: unknown, { job, retryInMs }: AttemptFailure): void =>
    void failures.push([error, job.attempt, retryInMs]);
  const thrown = [1, 2, 3].map((attempt) => new Error(`no ${attempt}`));
  await store.add([{ queue: QUEUE, payload: { to: "a" }, maxAttempts: 3 }]);
  let works = false;
  const settle: typeof store.settle = (settlements) =>
    works ? store.settle(settlements) : Promise.reject(new Error("disk full"));
  start(
    ({ attempt }) => Promise.reject(thrown[attempt - 1]!),
    { onFailure, onDead: (job) => dead.push(job) },
    faulty({ settle }),
  );
  await clock.advance(50);
  expect(failures).toEqual([]);
  works = true;
  await clock.advance(60_000);
  expect(failures).toEqual([
    [thrown[0], 1, 500],
    [thrown[1], 2, 1_000],
    [thrown[2], 3, undefined],
  ]);
  const reason = "Error: no 3";
  expect(dead).toEqual([{ id: "1", queue: QUEUE, payload: { to: "a" }, state: "dead", attempts: 3, reason }]);
});

it("tells of a time limit, of what no attempt can help, and of nothing else that ends an attempt", async () => {
  const told: [unknown, boolean][] = [];
  const dead: unknown[] = [];
  let snoozes = 0;
  await add("hangs", "unrecoverable", "snoozes", "settles", "works");
  start(
    async ({ id, token, payload }) => {
      if (payload === "hangs") return hang<undefined>();
      if (payload === "unrecoverable") throw new UnrecoverableError("never");
      if (payload === "snoozes" && (snoozes += 1) === 1) return snooze(10);
      if (payload !== "settles") return undefined;
      await store.settle([{ id, token, kind: "fail", error: "by itself" }]);
      return SETTLED;
    },
    {
      jobTimeoutMs: 100,
      onFailure: (error, { job, retryInMs }) => told.push([error, retryInMs === undefined], [job.payload, false]),
      onDead: ({ payload }) => dead.push(payload),
    },
  );
  await clock.advance(100);
  expect(told).toEqual([
    [expect.any(UnrecoverableError), true],
    ["unrecoverable", false],
    [expect.any(TimeoutError), false],
    ["hangs", false],
  ]);
  expect(dead).toEqual(["unrecoverable"]);
});

it("tells nothing of an attempt whose job is somebody else's by then", async () => {
  const told: unknown[] = [];
  const end = Promise.withResolvers<undefined>();
  await store.add([{ queue: QUEUE, payload: 1, maxAttempts: 2 }]);
  start(() => end.promise, { onFailure: (error) => told.push(error), onDead: (job) => told.push(job) }, gone());
  await clock.advance(0);
  start(() => hang(), {}, elsewhere());
  await clock.advance(LEASE_MS);
  end.reject(new Error("too late"));
  await clock.advance(0);
  expect([told, errors.map(([during]) => during)]).toEqual([[], ["settle"]]);
});

it("tells nothing of a failure that the store doesn't take", async () => {
  const told: unknown[] = [];
  await store.add([{ queue: QUEUE, payload: 1, maxAttempts: 1 }]);
  const refusing = faulty({ settle: (settlements) => Promise.resolve(settlements.map(() => false)) });
  const hooks = { onFailure: (error: unknown) => told.push(error), onDead: (job: DeadJob) => told.push(job) };
  start(() => Promise.reject(new Error("bad")), hooks, refusing);
  await clock.advance(0);
  expect([told, errors.map(([during]) => during)]).toEqual([[], ["settle"]]);
});

it("tells the worker that swept of a job that its crashes have ended, though it is removed at once", async () => {
  stageWith(new MemoryStore({ clock, retention: { deadMs: 0 } }));
  await store.add([
    { queue: QUEUE, payload: "used up", maxAttempts: 1 },
    { queue: QUEUE, payload: "poison", maxAttempts: 9 },
    { queue: QUEUE, payload: "goes on", maxAttempts: 9 },
  ]);
  start(() => hang(), { concurrency: 2 }, gone());
  await clock.advance(0);
  const dead: [string, DeadJob][] = [];
  const onDead = (by: string) => (job: DeadJob) => dead.push([by, job]);
  for (const by of ["one", "other"]) start(() => {}, { maxCrashes: 1, onDead: onDead(by) }, elsewhere());
  await clock.advance(LEASE_MS * 2);
  expect(new Set(dead.map(([by]) => by)).size).toBe(1);
  expect(dead.map(([, { payload, state, attempts }]) => [payload, state, attempts])).toEqual([
    ["poison", "quarantined", 1],
    ["used up", "quarantined", 1],
  ]);
});

it("goes on when a hook throws or rejects, and says so", async () => {
  const [thrown, rejected] = [new Error("thrown"), new Error("rejected")];
  await store.add([1, 2].map((payload) => ({ queue: QUEUE, payload, maxAttempts: 1 })));
  const worker = start(() => Promise.reject(new Error("no")), {
    onFailure: () => Promise.reject(rejected),
    onDead() {
      throw thrown;
    },
  });
  await clock.advance(0);
  expect(errors).toHaveLength(4);
  expect(new Set(errors.map(([during, error]) => [during, error].join()))).toEqual(
    new Set([rejected, thrown].map((error) => `hook,${error}`)),
  );
  expect(worker.stats()).toMatchObject({ failed: 2, running: 0 });
});

it.each(["onFailure", "onDead"])("refuses an %s that is no function", (name) => {
  expect(() => new Worker(store, QUEUE, () => {}, { [name]: 5 })).toThrow(`${name} must be a function, got number`);
});
