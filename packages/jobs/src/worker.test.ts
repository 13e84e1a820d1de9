import { systemClock } from "sluice";
import { expect, it } from "vitest";
import type { Json } from "./job.ts";
import { MemoryStore } from "./memory/memory-store.ts";
import { SETTLED, snooze, UnrecoverableError } from "./outcome.ts";
import type { JobContext } from "./run.ts";
import type { Store } from "./store.ts";
import {
  QUEUE,
  LEASE_MS,
  clock,
  store,
  errors,
  start,
  add,
  Desk,
  faulty,
  elsewhere,
  states,
  hang,
  fail,
  raise,
  revoked,
  stageWith,
} from "./worker.stage.ts";
import { Worker } from "./worker.ts";

it("hands a job and what belongs to the attempt to the handler, and keeps what it returns", async () => {
  const desk = new Desk();
  await add({ to: "a" });
  start(async (job, context) => {
    await desk.handler(job, context);
    return { sent: true };
  });
  await clock.advance(0);
  const [job, context] = [desk.jobs[0]!, desk.contexts[0]!];
  expect(job).toMatchObject({ queue: QUEUE, payload: { to: "a" }, attempt: 1, maxAttempts: 4 });
  const { attempt, token, idempotencyKey, signal } = context;
  expect([attempt, token, idempotencyKey, signal.aborted]).toEqual([1, job.token, job.id, false]);
  desk.ends[0]!.resolve(undefined);
  await clock.advance(0);
  expect(await store.get(job.id)).toMatchObject({ state: "succeeded", result: { sent: true }, attempts: 1 });
});

it("runs handlers that are not asynchronous, whether they return or throw", async () => {
  await add("good", "bad");
  start(({ payload }) => {
    if (payload === "bad") throw new UnrecoverableError("no");
  });
  await clock.advance(0);
  expect(await states()).toEqual(["succeeded", "dead"]);
});

it("gives every attempt the same idempotency key, and a greater token", async () => {
  const seen: JobContext[] = [];
  await add(1);
  start((_, context) => {
    seen.push(context);
    throw new Error("again");
  });
  await clock.advance(600_000);
  expect(seen.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4]);
  expect(new Set(seen.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
  const tokens = seen.map(({ token }) => token);
  expect(tokens).toEqual([...new Set(tokens)].toSorted((a, b) => a - b));
});

it("runs no more than concurrency at once, and claims only what it can start", async () => {
  const desk = new Desk();
  const asked: number[] = [];
  const claim: Store["claim"] = (request) => {
    asked.push(request.max);
    return store.claim(request);
  };
  await add(...Array.from({ length: 9 }, (_, index) => index));
  start(desk.handler, { concurrency: 4 }, faulty({ claim }));
  await clock.advance(0);
  expect(desk.jobs.length).toBe(4);
  expect((await store.stats(QUEUE)).running).toBe(4);
  for (const end of desk.ends.splice(0, 3)) end.resolve(undefined);
  await clock.advance(0);
  expect(desk.jobs.length).toBe(7);
  expect(asked).toEqual([4, 3]);
  expect((await store.stats(QUEUE)).ready).toBe(2);
});

it("saves the outcomes of one turn together, and fills their slots with one claim", async () => {
  const desk = new Desk();
  const calls: string[] = [];
  const settle: Store["settle"] = (settlements) => {
    calls.push(`settle ${settlements.length}`);
    return store.settle(settlements);
  };
  const claim: Store["claim"] = (request) => {
    calls.push(`claim ${request.max}`);
    return store.claim(request);
  };
  await add(...Array.from({ length: 20 }, (_, index) => index));
  start(desk.handler, {}, faulty({ settle, claim }));
  await clock.advance(0);
  for (const end of desk.ends.splice(0)) end.resolve(undefined);
  await clock.advance(0);
  expect(calls).toEqual(["claim 10", "settle 10", "claim 10"]);
});

it("wakes at once for a job that is added, and when a delayed one is due, without polling", async () => {
  const desk = new Desk();
  start(desk.handler, { pollMs: Infinity });
  await clock.advance(10);
  await add("now");
  await store.add([{ queue: QUEUE, payload: "later", delayMs: 70 }]);
  await clock.advance(0);
  expect(desk.jobs.map(({ payload }) => payload)).toEqual(["now"]);
  await clock.advance(69);
  expect(desk.jobs.length).toBe(1);
  await clock.advance(1);
  expect(desk.jobs.map(({ payload }) => payload)).toEqual(["now", "later"]);
});

it("finds what another process added within pollMs", async () => {
  const desk = new Desk();
  start(desk.handler, { pollMs: 300 }, elsewhere());
  await clock.advance(10);
  await add(1);
  await clock.advance(289);
  expect(desk.jobs.length).toBe(0);
  await clock.advance(1);
  expect(desk.jobs.length).toBe(1);
});

it("asks the store for nothing but leases while there is nothing to do", async () => {
  const calls: string[] = [];
  const spy = new Proxy<Store>(store, {
    get(target, key: keyof Store) {
      calls.push(key);
      return target[key]?.bind(target as never);
    },
  });
  start(() => {}, { pollMs: Infinity, leaseMs: 60_000 }, spy);
  await clock.advance(100);
  calls.length = 0;
  await clock.advance(300_000);
  expect(new Set(calls)).toEqual(new Set(["sweep"]));
  expect(calls.length).toBe(10);
});

it("tries again after a pause drawn below a doubling ceiling, and makes the job dead with all errors kept", async () => {
  const at: number[] = [];
  await add(1);
  start(
    ({ attempt }) => {
      at.push(clock.now());
      throw new Error(`no ${attempt}`);
    },
    { retry: { baseMs: 1_000, maxMs: 3_000 } },
  );
  await clock.advance(60_000);
  expect(at).toEqual([0, 500, 1_500, 3_000]);
  const [job] = await store.list({});
  expect(job).toMatchObject({ state: "dead", attempts: 4, reason: "Error: no 4" });
  expect(job?.errors.map(({ message }) => message)).toEqual([
    "Error: no 1",
    "Error: no 2",
    "Error: no 3",
    "Error: no 4",
  ]);
});

it("makes a job dead at once for an UnrecoverableError, and for what classify stops", async () => {
  await add("unrecoverable", "stopped", "retried");
  start(
    async ({ payload }) => {
      throw payload === "unrecoverable" ? new UnrecoverableError("never") : new Error(payload as string);
    },
    { classify: (error) => (String(error).includes("stopped") ? "stop" : "retry") },
  );
  await clock.advance(0);
  expect(await states()).toEqual(["dead", "dead", "scheduled"]);
});

it("retries, and says so, when classify itself throws", async () => {
  const broken = new Error("classify is broken");
  await add(1);
  start(() => Promise.reject(new Error("no")), {
    classify() {
      throw broken;
    },
  });
  await clock.advance(0);
  expect(await states()).toEqual(["scheduled"]);
  expect(errors).toEqual([["run", broken]]);
});

it("keeps whatever a handler throws as text that any store takes", async () => {
  const thrown: unknown[] = ["\ud800", Object.create(null), undefined, "x".repeat(20_000)];
  await add(0, 1, 2, 3);
  start(({ payload }) => {
    throw thrown[payload as number];
  });
  await clock.advance(0);
  const messages = (await store.list({})).map((job) => job.errors[0]?.message);
  expect(messages).toEqual(["\ufffd", "an error that can't be shown", "undefined", "x".repeat(8_192)]);
});

it("gives a snoozed job back for later without charging the attempt", async () => {
  const at: [number, number][] = [];
  await add(1);
  start(({ attempt }) => {
    at.push([clock.now(), attempt]);
    return at.length < 6 ? snooze(100, "the provider rests") : undefined;
  });
  await clock.advance(150);
  expect(await store.list({})).toMatchObject([{ state: "scheduled", reason: "the provider rests", attempts: 0 }]);
  await clock.advance(600);
  expect(at).toEqual([0, 100, 200, 300, 400, 500].map((ms) => [ms, 1]));
  expect(await states()).toEqual(["succeeded"]);
});

it.each([Number.NaN, -1, Infinity, 1e300])(
  "treats a snooze of %d ms, which is no duration, as a failure",
  async (ms) => {
    await add(1);
    start(() => snooze(ms));
    await clock.advance(0);
    expect((await store.list({}))[0]?.errors.length).toBe(1);
  },
);

it.each<[string, () => unknown]>([
  // oxlint-disable-next-line unicorn/no-thenable -- it is about one that is broken
  ["returns what fails when asked for then", () => Object.defineProperty({}, "then", { get: fail })],
  ["returns a proxy that was revoked", revoked],
  ["resolves with what fails at any look", async () => new Proxy({}, { getPrototypeOf: fail })],
  ["throws what fails when asked for its code", () => raise(Object.defineProperty({}, "code", { get: fail }))],
  ["throws a proxy that was revoked", () => raise(revoked())],
])("ends the attempt, and starts the others of its claim, when a handler %s", async (_, act) => {
  await store.add(["odd", 2, 3].map((payload) => ({ queue: QUEUE, payload, maxAttempts: 1 })));
  start(({ payload }) => (payload === "odd" ? act() : undefined) as undefined);
  await clock.advance(0);
  expect(await states()).toEqual(["dead", "succeeded", "succeeded"]);
});

it("writes nothing for a job that its handler settled", async () => {
  await add(1, 2);
  const worker = start(async ({ id, token }) => {
    await store.settle([{ id, token, kind: "complete", result: "mine" }]);
    return SETTLED;
  });
  await clock.advance(LEASE_MS);
  expect((await store.list({})).map(({ result }) => result)).toEqual(["mine", "mine"]);
  expect(worker.stats()).toMatchObject({ selfSettled: 2, completed: 0, lost: 0, running: 0, unsettled: 0 });
  expect(errors).toEqual([]);
});

it("completes a job whose result is no JSON or too big, without the result, and says so", async () => {
  stageWith(new MemoryStore({ clock, maxPayloadBytes: 100 }));
  await add("map", "big", "fine");
  const results: Record<string, unknown> = { map: new Map(), big: "x".repeat(200), fine: "ok" };
  start(({ payload }) => results[payload as string] as Json);
  await clock.advance(0);
  const jobs = await store.list({});
  expect(jobs.map(({ state, result }) => [state, result])).toEqual([
    ["succeeded", undefined],
    ["succeeded", undefined],
    ["succeeded", "ok"],
  ]);
  expect(errors.map(([during, error]) => [during, (error as Error).name])).toEqual([
    ["run", "TypeError"],
    ["settle", "RangeError"], // of all three together
    ["settle", "RangeError"],
  ]);
});

it("prunes at its start and every ten minutes, and goes on when that fails", async () => {
  stageWith(new MemoryStore({ clock, retention: { succeededMs: 1_000 } }));
  const at: number[] = [];
  const prune: Store["prune"] = () => {
    at.push(clock.now());
    return at.length === 2 ? Promise.reject(new Error("disk full")) : store.prune();
  };
  await add(1);
  start(() => {}, { leaseMs: 60_000 }, faulty({ prune }));
  await clock.advance(600_000);
  expect(await states()).toEqual(["succeeded"]);
  await clock.advance(600_000);
  expect(await states()).toEqual([]);
  expect(at).toEqual([0, 600_000, 1_200_000]);
  expect(errors.map(([during]) => during)).toEqual(["prune"]);
});

it("reports a store that fails, and goes on when it works again", async () => {
  const failure = new Error("disk full");
  let works = false;
  const or = <T>(act: () => Promise<T>): Promise<T> => (works ? act() : Promise.reject(failure));
  const desk = new Desk();
  await add(1);
  const worker = start(
    desk.handler,
    {},
    faulty({
      claim: (request) => or(() => store.claim(request)),
      settle: (settlements) => or(() => store.settle(settlements)),
      heartbeat: (claims, leaseMs) => or(() => store.heartbeat(claims, leaseMs)),
      sweep: (options) => or(() => store.sweep(options)),
      nextAt: (queue) => or(() => store.nextAt(queue)),
    }),
  );
  await clock.advance(10_000);
  expect(desk.jobs.length).toBe(0);
  expect(new Set(errors.map(([during]) => during))).toEqual(new Set(["claim", "sweep"]));
  expect(errors.every(([, error]) => error === failure)).toBe(true);
  expect(errors.length).toBeLessThan(30); // it doesn't hammer
  works = true;
  await clock.advance(5_000);
  expect(desk.jobs.length).toBe(1);

  works = false;
  errors.length = 0;
  desk.ends[0]!.resolve(undefined);
  await clock.advance(500);
  expect(worker.stats()).toMatchObject({ completed: 0, unsettled: 1, running: 0 });
  expect(new Set(errors.map(([during]) => during))).toContain("settle");
  works = true;
  await clock.advance(5_000);
  expect(worker.stats()).toMatchObject({ completed: 1, unsettled: 0 });
  expect(await states()).toEqual(["succeeded"]);
});

it("does not claim on while outcomes can't be saved", async () => {
  const started: unknown[] = [];
  await add(...Array.from({ length: 50 }, (_, index) => index));
  start(({ payload }) => void started.push(payload), { concurrency: 5 }, faulty({ settle: () => hang() }));
  await clock.advance(10);
  expect(started.length).toBe(10);
});

it("survives an onError that throws", async () => {
  const lines: unknown[] = [];
  const { error: original } = console;
  console.error = (...args) => void lines.push(...args);
  try {
    const broken = new Error("onError is broken");
    await add(1);
    start(() => new Map() as never, {
      onError() {
        throw broken;
      },
    });
    await clock.advance(0);
    expect(lines).toEqual([broken]);
    expect(await states()).toEqual(["succeeded"]);
  } finally {
    console.error = original;
  }
});

it("lets the event loop turn though a store in memory never does", async () => {
  let hasTurned = false;
  let runs = 0;
  setTimeout(() => (hasTurned = true));
  const memory = new MemoryStore({ retention: { succeededMs: 0 } });
  const done = Promise.withResolvers<undefined>();
  const worker = new Worker(memory, QUEUE, async () => {
    runs += 1;
    if (hasTurned || runs > 1_000_000) done.resolve(undefined);
    else await memory.add([{ queue: QUEUE, payload: null }]);
  });
  await memory.add([{ queue: QUEUE, payload: null }]);
  worker.start();
  await done.promise;
  expect(hasTurned).toBe(true);
  await worker.stop();
});

it.each([
  [{ concurrency: 0 }, "concurrency must be an integer >= 1, got 0"],
  [{ leaseMs: 0.5 }, "leaseMs must be an integer from 1 to 4320000000000000, got 0.5"],
  [{ pollMs: 0 }, "pollMs must be >= 1, got 0"],
  [{ jobTimeoutMs: Number.NaN }, "jobTimeoutMs must be >= 1, got NaN"],
  [{ maxCrashes: 0 }, "maxCrashes must be an integer >= 1, got 0"],
  [{ retry: { baseMs: -1 } }, "retry.baseMs must be from 0 to 4320000000000000, got -1"],
  [{ retry: { maxMs: Infinity } }, "retry.maxMs must be from 0 to 4320000000000000, got Infinity"],
  [{ name: "" }, "name must have 1 to 255 characters, got 0"],
])("refuses %j", (options, message) => {
  expect(() => new Worker(store, QUEUE, () => {}, { clock: systemClock, ...options })).toThrow(message);
});
