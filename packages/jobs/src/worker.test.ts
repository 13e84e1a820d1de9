import { systemClock, TimeoutError } from "sluice";
import { VirtualClock } from "sluice/testing";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Handler, Job } from "./attempts.ts";
import type { Json } from "./job.ts";
import { MemoryStore } from "./memory/memory-store.ts";
import { LeaseLostError, SETTLED, snooze, UnrecoverableError } from "./outcome.ts";
import type { JobContext } from "./run.ts";
import type { Store } from "./store.ts";
import type { WorkerErrorContext, WorkerOptions } from "./worker-options.ts";
import { Worker } from "./worker.ts";

const QUEUE = "mail";
const LEASE_MS = 2_000;

let clock: VirtualClock;
let store: MemoryStore;
let workers: Worker[];
let errors: [string, unknown][];

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

function start(handler: Handler, options: WorkerOptions = {}, from: Store = store): Worker {
  const worker = new Worker(from, QUEUE, handler, { clock, leaseMs: LEASE_MS, random: () => 0.5, onError, ...options });
  workers.push(worker);
  worker.start();
  return worker;
}

function onError(error: unknown, { during }: WorkerErrorContext): void {
  errors.push([during, error]);
}

function add(...payloads: Json[]): Promise<unknown> {
  return store.add(payloads.map((payload) => ({ queue: QUEUE, payload })));
}

/** Jobs as a handler met them, each ended by hand. */
class Desk {
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
function faulty(faults: Partial<Store>): Store {
  return new Proxy<Store>(store, {
    get: (target, key: keyof Store) => faults[key] ?? target[key].bind(target as never),
  });
}

/** The store as another process has it: it doesn't hear of what is added here. */
function elsewhere(faults: Partial<Store> = {}): Store {
  return faulty({ onReady: () => () => {}, ...faults });
}

/** The store as a process has it that claims once and is then killed, or paused. */
function gone(faults: Partial<Store> = {}): Store {
  let claims = 0;
  const claim: Store["claim"] = (request) => ((claims += 1) === 1 ? store.claim(request) : hang());
  return elsewhere({ claim, heartbeat: () => hang(), sweep: () => hang(), ...faults });
}

async function states(): Promise<string[]> {
  return (await store.list({})).map(({ state }) => state);
}

const hang = <T>(): Promise<T> => new Promise(() => {});

const fail = (): never => raise(new Error("broken"));

function raise(error: unknown): never {
  throw error;
}

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

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
      return target[key].bind(target as never);
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
  store = new MemoryStore({ clock, maxPayloadBytes: 100 });
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
  clock = new Jumping({ wallStartAt: Date.UTC(2030, 0, 1) });
  store = new MemoryStore({ clock });
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

it("prunes at its start and every ten minutes, and goes on when that fails", async () => {
  store = new MemoryStore({ clock, retention: { succeededMs: 1_000 } });
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
    store = new MemoryStore({ clock });
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
