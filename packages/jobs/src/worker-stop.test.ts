import { ClosedError } from "sluice";
import { VirtualClock } from "sluice/testing";
import { afterEach, beforeEach, expect, it } from "vitest";
import { MemoryStore } from "./memory/memory-store.ts";
import { SETTLED } from "./outcome.ts";
import type { JobContext } from "./run.ts";
import type { Store } from "./store.ts";
import type { StopOptions, StopReport } from "./worker-options.ts";
import { Worker } from "./worker.ts";

const QUEUE = "mail";

let clock: VirtualClock;
let store: MemoryStore;
let contexts: JobContext[];

beforeEach(() => {
  clock = new VirtualClock({ wallStartAt: Date.UTC(2030, 0, 1) });
  store = new MemoryStore({ clock });
  contexts = [];
});

afterEach(() => {
  expect(clock.timers).toBe(0);
});

/** A worker on whose handlers the payload says what they do: end after so many ms, or heed the signal, or neither. */
async function start(payloads: readonly (number | "heeds" | "hangs")[], from: Store = store): Promise<Worker> {
  await store.add(payloads.map((payload) => ({ queue: QUEUE, payload })));
  const worker = new Worker(
    from,
    QUEUE,
    ({ payload }, context) => {
      contexts.push(context);
      const { promise, resolve, reject } = Promise.withResolvers<undefined>();
      const { signal } = context;
      if (typeof payload === "number") clock.setTimer(payload, { onTimer: () => resolve(undefined) });
      else if (payload === "heeds") signal.addEventListener("abort", () => reject(signal.reason as Error));
      return promise;
    },
    { clock, onError: () => {} },
  );
  worker.start();
  await clock.advance(0);
  return worker;
}

/** What `stop` reports, and how long it took. */
async function stop(worker: Worker, options?: StopOptions): Promise<StopReport & { tookMs: number }> {
  const from = clock.now();
  const report = worker.stop(options).then((found) => ({ ...found, tookMs: clock.now() - from }));
  await clock.advance(60_000);
  return report;
}

function faulty(faults: Partial<Store>): Store {
  return new Proxy<Store>(store, {
    get: (target, key: keyof Store) => faults[key] ?? target[key]?.bind(target as never),
  });
}

const hang = <T>(): Promise<T> => new Promise(() => {});

it("ends at once when nothing runs", async () => {
  const worker = await start([]);
  expect(await stop(worker)).toEqual({ finished: 0, aborted: 0, released: [], lost: [], tookMs: 0 });
  expect(worker.stats().state).toBe("stopped");
});

it("claims nothing more, and lets what runs end by itself", async () => {
  const worker = await start(Array.from({ length: 12 }, () => 3_000));
  expect(await stop(worker)).toEqual({ finished: 10, aborted: 0, released: [], lost: [], tookMs: 3_000 });
  expect(contexts.some(({ signal }) => signal.aborted)).toBe(false);
  expect((await store.stats(QUEUE)).ready).toBe(2);
});

it("aborts after drainMs, and gives back uncharged what ends of it", async () => {
  const worker = await start(["heeds", "heeds", 1_000]);
  expect(await stop(worker, { drainMs: 4_000 })).toEqual({
    finished: 1,
    aborted: 2,
    released: ["1", "2"],
    lost: [],
    tookMs: 4_000,
  });
  expect(contexts[0]?.signal.reason).toBeInstanceOf(ClosedError);
  const jobs = await store.list({ states: ["ready"] });
  expect(jobs.map(({ id, attempts, errors }) => [id, attempts, errors.length])).toEqual([
    ["1", 0, 0],
    ["2", 0, 0],
  ]);
});

it("keeps the outcome of a job that ends well though it was aborted", async () => {
  const worker = await start([6_000]);
  const report = await stop(worker, { drainMs: 4_000, abortMs: 5_000 });
  expect(report).toEqual({ finished: 1, aborted: 1, released: [], lost: [], tookMs: 6_000 });
  expect((await store.stats(QUEUE)).ready).toBe(0);
});

it("gives back what never ends, before the deadline, and refuses its late outcome", async () => {
  const worker = await start(["hangs", 11_000]);
  const report = await stop(worker, { drainMs: 5_000, abortMs: 5_000 });
  expect(report).toEqual({ finished: 0, aborted: 2, released: ["1", "2"], lost: [], tookMs: 9_000 });
  expect(await store.stats(QUEUE)).toMatchObject({ ready: 2, running: 0 });
});

it("keeps the leases of what it waits for", async () => {
  const worker = await start([50_000]);
  const other = new Worker(store, QUEUE, () => {}, { clock });
  other.start();
  expect(await stop(worker, { drainMs: 55_000 })).toMatchObject({ finished: 1, tookMs: 50_000 });
  expect(await store.get("1")).toMatchObject({ state: "succeeded", attempts: 1 });
  await stop(other);
});

it("gives back what a claim brings that was under way", async () => {
  const gate = Promise.withResolvers<undefined>();
  const claim: Store["claim"] = async (request) => {
    const jobs = await store.claim(request);
    await gate.promise;
    return jobs;
  };
  const worker = await start([1, 1], faulty({ claim }));
  const stopped = worker.stop();
  await clock.advance(2_000);
  gate.resolve(undefined);
  await clock.advance(0);
  expect(await stopped).toEqual({ finished: 0, aborted: 0, released: ["1", "2"], lost: [] });
  expect(contexts.length).toBe(0);
  expect(await store.get("1")).toMatchObject({ state: "ready", attempts: 0 });
});

it.each([
  [1, { released: ["1"], lost: [] }],
  [Infinity, { released: [], lost: ["1"] }],
])("reports what a late claim brought though giving it back fails %d times", async (failures, expected) => {
  const gate = Promise.withResolvers<undefined>();
  const claim: Store["claim"] = async (request) => {
    await gate.promise;
    return store.claim(request);
  };
  let left = failures;
  const settle: Store["settle"] = (settlements) =>
    (left -= 1) >= 0 ? Promise.reject(new Error("no connection")) : store.settle(settlements);
  const worker = await start([1], faulty({ claim, settle }));
  const stopped = worker.stop();
  gate.resolve(undefined);
  await clock.advance(20_000);
  expect(await stopped).toEqual({ finished: 0, aborted: 0, ...expected });
});

it("gives back what a claim brings after its end", async () => {
  const gate = Promise.withResolvers<undefined>();
  const claim: Store["claim"] = async (request) => {
    await gate.promise;
    return store.claim(request);
  };
  const worker = await start([1], faulty({ claim }));
  await stop(worker);
  gate.resolve(undefined);
  await clock.advance(0);
  expect(await store.get("1")).toMatchObject({ state: "ready", attempts: 0 });
});

it("may be started again when the store could not be listened to", async () => {
  let tries = 0;
  const onReady: Store["onReady"] = (listener) => {
    tries += 1;
    if (tries === 1) throw new Error("not yet");
    return store.onReady(listener);
  };
  const worker = new Worker(faulty({ onReady }), QUEUE, () => {}, { clock });
  await store.add([{ queue: QUEUE, payload: 1 }]);
  expect(() => worker.start()).toThrow("not yet");
  worker.start();
  await clock.advance(0);
  expect(await store.get("1")).toMatchObject({ state: "succeeded" });
  await stop(worker);
});

it("C178: ends in time, and lists nothing, when the store never answered", async () => {
  const silent = new Proxy<Store>(store, { get: (_, key) => (key === "onReady" ? () => () => {} : hang) });
  const worker = await start([1], silent);
  const report = await stop(worker, { drainMs: 1_500, abortMs: 500 });
  expect(report).toEqual({ finished: 0, aborted: 0, released: [], lost: [], tookMs: 2_000 });
});

it("C178: ends in time, and lists what is unfinished, when the store goes silent while it stops", async () => {
  let isDown = false;
  const down = new Proxy<Store>(store, {
    get: (target, key: keyof Store) => (isDown && key !== "onReady" ? hang : target[key]?.bind(target as never)),
  });
  const worker = await start([500, "heeds", "hangs"], down);
  isDown = true;
  const report = await stop(worker, { drainMs: 1_500, abortMs: 500 });
  expect(report).toEqual({ finished: 0, aborted: 2, released: [], lost: ["1", "2", "3"], tookMs: 2_000 });
});

it("C178: ends in time, and lists what is unfinished, when the store refuses everything", async () => {
  const down = faulty({ settle: () => Promise.reject(new Error("no connection")) });
  const worker = await start([500, "hangs"], down);
  const report = await stop(worker, { drainMs: 1_500, abortMs: 500 });
  expect(report).toMatchObject({ finished: 0, aborted: 1, tookMs: 2_000 });
  expect(report.lost.toSorted((a, b) => a.localeCompare(b))).toEqual(["1", "2"]);
});

it("saves what a failing store would not take before, without waiting for the end of its pause", async () => {
  let works = false;
  const settle: Store["settle"] = (settlements) =>
    works ? store.settle(settlements) : Promise.reject(new Error("disk full"));
  const worker = await start([10], faulty({ settle }));
  await clock.advance(30_000);
  const stopped = worker.stop({ drainMs: 0, abortMs: 100 });
  works = true;
  await clock.advance(0);
  expect(await stopped).toEqual({ finished: 1, aborted: 0, released: [], lost: [] });
});

it("counts what handlers settled themselves as finished, and lists what was lost meanwhile", async () => {
  await store.add([1, 2].map((payload) => ({ queue: QUEUE, payload })));
  const worker = new Worker(
    store,
    QUEUE,
    async ({ id, token, payload }) => {
      await new Promise<void>((resolve) => void clock.setTimer(100, { onTimer: resolve }));
      const settled = await store.settle([{ id, token, kind: "complete" }]);
      return payload === 1 && settled[0] ? SETTLED : undefined;
    },
    { clock, onError: () => {} },
  );
  worker.start();
  await clock.advance(0);
  expect(await stop(worker)).toMatchObject({ finished: 1, lost: ["2"], tookMs: 100 });
});

it("may be started and stopped twice, is safe to stop before the start, and can't be started again", async () => {
  const worker = await start([100]);
  worker.start();
  const [first, second] = [worker.stop(), worker.stop({ drainMs: 0 })];
  await clock.advance(100);
  expect(await first).toEqual({ finished: 1, aborted: 0, released: [], lost: [] });
  expect(await second).toBe(await first);
  expect(() => worker.start()).toThrow(ClosedError);

  const unstarted = new Worker(store, QUEUE, () => {}, { clock });
  expect(await unstarted.stop()).toEqual({ finished: 0, aborted: 0, released: [], lost: [] });
  expect(() => unstarted.start()).toThrow(ClosedError);
});

it("stops at the end of a block", async () => {
  const worker = await start([]);
  {
    await using _ = worker;
    expect(worker.stats().state).toBe("running");
  }
  expect(worker.stats().state).toBe("stopped");
});

it.each([-1, Number.NaN, Infinity])("refuses to drain for %d ms, and goes on", async (drainMs) => {
  const worker = await start([]);
  await expect(worker.stop({ drainMs })).rejects.toThrow(RangeError);
  expect(worker.stats().state).toBe("running");
  await stop(worker);
});
