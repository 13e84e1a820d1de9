import { deepEqual, equal, rejects } from "node:assert/strict";
import type { Store } from "../store.ts";
import { CANCELLED } from "../reasons.ts";
import { addOne, claim, claimOne, type Facts, LEASE_MS, payloads, QUEUE, read } from "./case.ts";

const DAY_MS = 86_400_000;

export const lookingAfter: Facts = {
  "cancels what does not run, by filter": async ({ store }) => {
    const ready = await addOne(store, { payload: "ready", priority: -1 });
    const scheduled = await addOne(store, { payload: "scheduled", delayMs: 60_000 });
    await addOne(store, { payload: "running" });
    await addOne(store, { payload: "other", queue: "other" });
    await claimOne(store);
    equal(await store.cancel({ queue: QUEUE, states: ["scheduled"] }), 1);
    equal(await store.cancel({ queue: QUEUE }), 1);
    equal(await store.cancel({ queue: QUEUE }), 0);
    equal(await store.cancel({ ids: [] }), 0);
    for (const id of [ready, scheduled]) {
      const { state, reason, endedAt } = await read(store, id);
      deepEqual([state, reason, endedAt], ["cancelled", CANCELLED, await store.now()]);
    }
    deepEqual(await payloads(store.list({ states: ["running", "ready"] })), ["running", "other"]);
    deepEqual(await claim(store, 5), []);
  },

  "redrives dead, quarantined and cancelled jobs with fresh counts, and keeps their errors": async ({
    store,
    clock,
  }) => {
    await store.add(
      ["dead", "quarantined", "cancelled", "succeeded"].map((payload) => ({ queue: QUEUE, payload, maxAttempts: 1 })),
    );
    const jobs = await claim(store, 4);
    await store.settle([
      { ...jobs[0]!, kind: "fail", error: "no" },
      { ...jobs[2]!, kind: "release" },
      { ...jobs[3]!, kind: "complete" },
    ]);
    await store.cancel({ queue: QUEUE });
    await clock.advance(LEASE_MS);
    await store.sweep({ maxCrashes: 1 });
    deepEqual(await store.redrive({ queue: QUEUE, states: ["dead"] }), { redriven: 1, duplicates: 0 });
    deepEqual(await store.redrive({ queue: QUEUE }), { redriven: 2, duplicates: 0 });
    deepEqual(await store.redrive({ queue: QUEUE }), { redriven: 0, duplicates: 0 });
    const now = await store.now();
    const ready = await store.list({ states: ["ready"] });
    deepEqual(
      ready.map(({ payload, attempts, crashes, runAt, endedAt, reason, errors }) => {
        return [payload, attempts, crashes, runAt, endedAt, reason, errors.map(({ kind }) => kind)];
      }),
      [
        ["dead", 0, 0, now, undefined, undefined, ["failure"]],
        ["quarantined", 0, 0, now, undefined, undefined, ["crash"]],
        ["cancelled", 0, 0, now, undefined, undefined, []],
      ],
    );
    equal((await claimOne(store)).attempt, 1);
  },

  "leaves a job as it is whose unique key is taken, and counts it": async ({ store }) => {
    const first = await addOne(store, { payload: 1, uniqueKey: "k" });
    await store.settle([{ ...(await claimOne(store)), kind: "fail", error: "no" }]);
    await addOne(store, { payload: 2, uniqueKey: "k" });
    await store.settle([{ ...(await claimOne(store)), kind: "fail", error: "no" }]);
    const before = await store.list({});
    await addOne(store, { payload: 3, uniqueKey: "k" });
    deepEqual(await store.redrive({ states: ["dead"] }), { redriven: 0, duplicates: 2 });
    deepEqual(await store.list({ states: ["dead"] }), before);
    await store.settle([{ ...(await claimOne(store)), kind: "complete" }]);
    deepEqual(await store.redrive({ states: ["dead"] }), { redriven: 1, duplicates: 1 });
    equal((await read(store, first)).state, "ready");
  },

  "prunes what has ended when its retention is over": {
    options: { retention: { succeededMs: 1_000, deadMs: 5_000 } },
    fact: async ({ store, clock }) => {
      await store.add([1, 2, 3, 4, 5].map((payload) => ({ queue: QUEUE, payload, maxAttempts: 1 })));
      const jobs = await claim(store, 4, { leaseMs: 1 });
      await clock.advance(1);
      await store.settle([
        { ...jobs[0]!, kind: "complete" },
        { ...jobs[1]!, kind: "fail", error: "no" },
        { ...jobs[2]!, kind: "release" },
      ]);
      await store.cancel({ ids: [jobs[2]!.id] });
      await store.sweep({ maxCrashes: 1 });
      await clock.advance(999);
      equal(await store.prune(), 0);
      await clock.advance(1);
      equal(await store.prune(), 2);
      deepEqual(await payloads(store.list({})), [2, 4, 5]);
      await clock.advance(3_999);
      equal(await store.prune(), 0);
      await clock.advance(1);
      equal(await store.prune(), 2);
      deepEqual(await payloads(store.list({})), [5]);
    },
  },

  "keeps succeeded jobs for a day and dead ones for good unless told otherwise": async ({ store, clock }) => {
    await store.add([1, 2].map((payload) => ({ queue: QUEUE, payload })));
    const [one, two] = await claim(store, 2);
    await store.settle([
      { ...one!, kind: "complete" },
      { ...two!, kind: "fail", error: "no" },
    ]);
    await clock.advance(DAY_MS - 1);
    equal(await store.prune(), 0);
    await clock.advance(1);
    equal(await store.prune(), 1);
    await clock.advance(1_000 * DAY_MS);
    equal(await store.prune(), 0);
    deepEqual(await payloads(store.list({})), [2]);
  },

  "removes a job in the moment it ends where the retention is 0, and frees its key": {
    options: { retention: { succeededMs: 0, deadMs: 0 } },
    fact: async ({ store }) => {
      for (const kind of ["complete", "fail"] as const) {
        const id = await addOne(store, { uniqueKey: "k" });
        const job = await claimOne(store);
        deepEqual(await store.settle([{ ...job, kind, error: "no" }]), [true]);
        equal(await store.get(id), undefined);
        deepEqual(await store.settle([{ ...job, kind: "complete" }]), [false]);
      }
      await addOne(store, { uniqueKey: "k" });
      equal(await store.cancel({ queue: QUEUE }), 1);
      deepEqual(await store.list({}), []);
    },
  },

  "tells its listeners of jobs that were added, put back or redriven": async ({ store, clock }) => {
    const heard: string[] = [];
    const stop = store.onReady((queue) => void heard.push(queue));
    const told = async (act: () => Promise<unknown>): Promise<boolean> => {
      heard.length = 0;
      await act();
      return heard.includes(QUEUE);
    };
    equal(await told(() => addOne(store)), true);
    equal(await told(() => addOne(store, { delayMs: 60_000, uniqueKey: "k" })), true);
    const sooner = { queue: QUEUE, payload: null, uniqueKey: "k", onConflict: "replace", delayMs: 50_000 } as const;
    equal(await told(() => store.add([sooner])), true);
    equal(await told(() => addOne(store, { queue: "other" })), false);
    for (const act of [
      { kind: "release" },
      { kind: "snooze", delayMs: 0 },
      { kind: "fail", error: "no", retryInMs: 0 },
    ] as const) {
      const job = await claimOne(store);
      equal(await told(() => store.settle([{ ...job, ...act }])), true, act.kind);
    }
    await claimOne(store);
    await clock.advance(LEASE_MS);
    equal(await told(() => store.sweep()), true);
    const job = await claimOne(store);
    await store.settle([{ ...job, kind: "fail", error: "no" }]);
    equal(await told(() => store.redrive({ ids: [job.id] })), true);
    stop();
    stop();
    equal(await told(() => addOne(store)), false);
  },

  "rejects everything once it is closed, which may be said twice": async ({ store }) => {
    const id = await addOne(store);
    const job = await claimOne(store);
    await Promise.all([store.close(), store.close()]);
    await store.close();
    const acts: Record<string, (store: Store) => Promise<unknown>> = {
      now: () => store.now(),
      add: () => store.add([{ queue: QUEUE, payload: null }]),
      claim: () => claim(store, 1),
      settle: () => store.settle([{ ...job, kind: "complete" }]),
      heartbeat: () => store.heartbeat([job], 5),
      sweep: () => store.sweep(),
      nextAt: () => store.nextAt(QUEUE),
      get: () => store.get(id),
      list: () => store.list({}),
      stats: () => store.stats(QUEUE),
      redrive: () => store.redrive({ ids: [id] }),
      cancel: () => store.cancel({ ids: [id] }),
      prune: () => store.prune(),
    };
    for (const [name, act] of Object.entries(acts)) await rejects(act(store), { code: "CLOSED" }, name);
  },
};
