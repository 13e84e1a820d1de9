import { deepEqual, equal } from "node:assert/strict";
import type { NewJob } from "../job.ts";
import type { Store } from "../store.ts";
import { addOne, claim, claimOne, type Facts, LEASE_MS, payloads, QUEUE, read } from "./case.ts";

const KEY = { queue: QUEUE, payload: "first", uniqueKey: "k" } as const;

export const unique: Facts = {
  "keeps a key for one job while it is scheduled, ready or running": async ({ store, clock }) => {
    const id = await addOne(store, { ...KEY, delayMs: 100 });
    deepEqual(await again(store), { id, outcome: "existing" });
    await clock.advance(100);
    deepEqual(await again(store), { id, outcome: "existing" });
    await claimOne(store);
    deepEqual(await again(store), { id, outcome: "existing" });
    equal((await store.list({})).length, 1);
    equal((await read(store, id)).payload, "first");
  },

  "keeps keys of each queue apart, and jobs without a key free": async ({ store }) => {
    await addOne(store, KEY);
    equal((await again(store, { queue: "other" })).outcome, "created");
    equal((await again(store, { uniqueKey: "K" })).outcome, "created");
    equal((await again(store, { uniqueKey: undefined })).outcome, "created");
    equal((await again(store, { uniqueKey: undefined })).outcome, "created");
  },

  "sees the jobs before it in the batch": async ({ store }) => {
    const added = await store.add([KEY, KEY, { ...KEY, payload: "third", onConflict: "replace" }]);
    deepEqual(
      added.map(({ outcome }) => outcome),
      ["created", "existing", "replaced"],
    );
    equal(new Set(added.map(({ id }) => id)).size, 1);
    deepEqual(await payloads(claim(store, 10)), ["third"]);
  },

  "replaces payload, time and priority of a job that does not run, and keeps one that does": async ({
    store,
    clock,
  }) => {
    const id = await addOne(store, { ...KEY, delayMs: 5_000 });
    await addOne(store, { payload: "before it" });
    await clock.advance(10);
    const change = { payload: "second", priority: 7, onConflict: "replace" } as const;
    deepEqual(await again(store, change), { id, outcome: "replaced" });
    const { state, payload, priority, runAt, addedAt } = await read(store, id);
    const now = await store.now();
    deepEqual([state, payload, priority, runAt, addedAt], ["ready", "second", 7, now, now - 10]);

    deepEqual(await again(store, { ...change, delayMs: 50 }), { id, outcome: "replaced" });
    equal((await read(store, id)).state, "scheduled");
    await clock.advance(50);
    deepEqual(await payloads(claim(store, 1)), ["second"]);
    deepEqual(await again(store, { ...change, payload: "third" }), { id, outcome: "existing" });
    equal((await read(store, id)).payload, "second");
  },

  "C183: frees the key of a job that has failed for good, succeeded, or was cancelled or quarantined": async ({
    store,
    clock,
  }) => {
    await addOne(store, KEY);
    await store.settle([{ ...(await claimOne(store)), kind: "fail", error: "no" }]);
    equal((await again(store)).outcome, "created");

    await store.settle([{ ...(await claimOne(store)), kind: "complete" }]);
    equal((await again(store)).outcome, "created");

    await store.cancel({ queue: QUEUE });
    equal((await again(store)).outcome, "created");

    await claimOne(store);
    await clock.advance(LEASE_MS);
    equal((await store.sweep({ maxCrashes: 1 })).quarantined, 1);
    equal((await again(store)).outcome, "created");
  },

  "C183: gives the key of a killed worker's job to a new one as soon as the lease has lapsed": async ({
    store,
    clock,
  }) => {
    await addOne(store, { ...KEY, maxAttempts: 1 });
    await claimOne(store);
    await clock.advance(LEASE_MS - 1);
    equal((await again(store)).outcome, "existing");
    await clock.advance(1);
    equal((await again(store)).outcome, "created");
    equal((await again(store)).outcome, "existing");
  },

  "C183: lets a recovered job keep its key, and frees it when that job has ended": async ({ store, clock }) => {
    const id = await addOne(store, KEY);
    await claimOne(store);
    await clock.advance(LEASE_MS);
    await store.sweep();
    deepEqual(await again(store), { id, outcome: "existing" });
    await store.settle([{ ...(await claimOne(store)), kind: "complete" }]);
    equal((await again(store)).outcome, "created");
  },

  "C184: keeps the key of a job that waits for its retry, so that it runs once more and no more": async ({
    store,
    clock,
  }) => {
    const id = await addOne(store, KEY);
    await store.settle([{ ...(await claimOne(store)), kind: "fail", error: "not yet", retryInMs: 60_000 }]);
    deepEqual(await again(store), { id, outcome: "existing" });
    await clock.advance(60_000);
    const claimed = await claim(store, 10);
    deepEqual(
      claimed.map((job) => [job.id, job.attempt]),
      [[id, 2]],
    );
    await store.settle([{ ...claimed[0]!, kind: "complete" }]);
    deepEqual(await claim(store, 10), []);
  },

  "lets a job that lost its key succeed, but neither revive its lease nor come back": async ({ store, clock }) => {
    for (const kind of ["complete", "release"] as const) {
      const old = await addOne(store, KEY);
      const held = await claimOne(store);
      await clock.advance(LEASE_MS);
      const newer = (await again(store)).id;
      deepEqual(await store.heartbeat([held], LEASE_MS), [false]);
      deepEqual(await store.settle([{ ...held, kind }]), [true]);
      equal((await read(store, old)).state, kind === "complete" ? "succeeded" : "cancelled");
      deepEqual(await again(store), { id: newer, outcome: "existing" });
      await store.settle([{ ...(await claimOne(store)), kind: "complete" }]);
    }
  },

  "gives a job that lost its key the key again if it is free when the job comes back": async ({ store, clock }) => {
    const old = await addOne(store, KEY);
    await claimOne(store);
    await clock.advance(LEASE_MS);
    await again(store);
    await store.settle([{ ...(await claimOne(store)), kind: "complete" }]);
    deepEqual(await store.sweep(), { ready: 1, dead: 0, quarantined: 0, duplicates: 0, ended: [] });
    deepEqual(await again(store), { id: old, outcome: "existing" });
  },

  "gives a free key to the newest of several jobs that lost it": async ({ store, clock }) => {
    const ids: string[] = [];
    for (let count = 0; count < 3; count += 1) {
      ids.push((await again(store)).id);
      await claimOne(store);
      await clock.advance(LEASE_MS);
    }
    await again(store);
    await store.settle([{ ...(await claimOne(store)), kind: "complete" }]);
    deepEqual(await store.sweep(), { ready: 1, dead: 0, quarantined: 0, duplicates: 2, ended: [] });
    const states = await Promise.all(ids.map(async (id) => (await read(store, id)).state));
    deepEqual(states, ["cancelled", "cancelled", "ready"]);
  },
};

async function again(store: Store, change: Partial<NewJob> = {}): Promise<{ id: string; outcome: string }> {
  const [added] = await store.add([{ ...KEY, payload: "again", ...change }]);
  if (added === undefined) throw new Error("add gave no answer");
  return added;
}
