import { deepEqual, equal, ok } from "node:assert/strict";
import { addOne, claim, claimOne, type Facts, LEASE_MS, payloads, QUEUE } from "./case.ts";

export const reading: Facts = {
  "knows no job by an id that it never gave": async ({ store }) => {
    await addOne(store);
    for (const id of ["0", "999999", "-1", "1.0", "01", " 1", "x", "", "1e0", "99999999999999999999"]) {
      equal(await store.get(id), undefined, id);
    }
  },

  "lists by queue, state and id, all that are given, oldest first": async ({ store, clock }) => {
    const ids = [
      await addOne(store, { payload: 1 }),
      await addOne(store, { payload: 2, queue: "other" }),
      await addOne(store, { payload: 3, delayMs: 100 }),
      await addOne(store, { payload: 4, priority: 9 }),
    ];
    const running = await claimOne(store);
    equal(running.payload, 4);
    deepEqual(await payloads(store.list({})), [1, 2, 3, 4]);
    deepEqual(await payloads(store.list({ queue: QUEUE })), [1, 3, 4]);
    deepEqual(await payloads(store.list({ states: ["scheduled", "running"] })), [3, 4]);
    deepEqual(await payloads(store.list({ ids: [ids[2]!, ids[0]!, "nobody", ids[0]!] })), [1, 3]);
    deepEqual(await payloads(store.list({ ids, queue: QUEUE, states: ["ready"] })), [1]);
    deepEqual(await store.list({ ids: [] }), []);
    deepEqual(await store.list({ states: [] }), []);
    deepEqual(await payloads(store.list({ states: Array.from({ length: 2_000 }, () => "running" as const) })), [4]);
    await clock.advance(100);
    deepEqual(await payloads(store.list({ queue: QUEUE, states: ["ready"] })), [1, 3]);
  },

  "lists page by page, also after a job that is gone": {
    options: { retention: { succeededMs: 0 } },
    fact: async ({ store }) => {
      await store.add(Array.from({ length: 105 }, (_, payload) => ({ queue: QUEUE, payload })));
      const first = await store.list({});
      equal(first.length, 100);
      const after = first.at(-1)!.id;
      await store.cancel({ ids: [after] });
      equal(await store.get(after), undefined);
      deepEqual(await payloads(store.list({}, { after })), [100, 101, 102, 103, 104]);
      deepEqual(await payloads(store.list({}, { after, limit: 2 })), [100, 101]);
      deepEqual(await store.list({}, { after: "999999" }), []);
    },
  },

  "counts the jobs of a queue by state": async ({ store, clock }) => {
    await store.add([
      { queue: "other", payload: null },
      ...[1, 2, 3, 4, 5].map((payload) => ({ queue: QUEUE, payload, maxAttempts: 1 })),
      { queue: QUEUE, payload: 6, delayMs: 60_000 },
    ]);
    const [one, two] = await claim(store, 4);
    await store.settle([
      { ...one!, kind: "complete" },
      { ...two!, kind: "fail", error: "no" },
    ]);
    await clock.advance(LEASE_MS);
    await store.sweep({ maxCrashes: 1 });
    const { oldestReadyMs, ...counts } = await store.stats(QUEUE);
    deepEqual(counts, { scheduled: 1, ready: 1, running: 0, dead: 1, quarantined: 2 });
    equal(oldestReadyMs, LEASE_MS);
    const nothing = { scheduled: 0, ready: 0, running: 0, dead: 0, quarantined: 0, oldestReadyMs: 0 };
    deepEqual(await store.stats("nobody's"), nothing);
  },

  "F03.5: the age of the oldest job climbs while the depth looks healthy": async ({ store, clock }) => {
    const seen: (readonly [number, number])[] = [];
    await addOne(store, { payload: "starved", priority: -1 });
    for (let minute = 1; minute <= 5; minute += 1) {
      await addOne(store, { payload: minute });
      const job = await claimOne(store);
      await store.settle([{ ...job, kind: "complete" }]);
      await clock.advance(60_000);
      const { ready, oldestReadyMs } = await store.stats(QUEUE);
      seen.push([ready, oldestReadyMs / 60_000]);
    }
    deepEqual(seen, [
      [1, 1],
      [1, 2],
      [1, 3],
      [1, 4],
      [1, 5],
    ]);
  },

  "tells the age by due time, of ready jobs only": async ({ store, clock }) => {
    const now = await store.now();
    await addOne(store, { runAt: now - 500, priority: -5 });
    await addOne(store, { delayMs: 50 });
    equal((await store.stats(QUEUE)).oldestReadyMs, 500);
    await clock.advance(100);
    equal((await store.stats(QUEUE)).oldestReadyMs, 600);
    await claim(store, 1);
    equal((await store.stats(QUEUE)).oldestReadyMs, 600);
    await claim(store, 1);
    equal((await store.stats(QUEUE)).oldestReadyMs, 0);
  },

  "tells when there will be something to do": async ({ store, clock }) => {
    equal(await store.nextAt(QUEUE), undefined);
    const start = await store.now();
    await addOne(store, { queue: "other" });
    await addOne(store, { delayMs: 5_000 });
    equal(await store.nextAt(QUEUE), start + 5_000);
    await addOne(store, { delayMs: 100 });
    equal(await store.nextAt(QUEUE), start + 100);
    await clock.advance(100);
    ok((await store.nextAt(QUEUE))! <= start + 100);
    const job = await claimOne(store);
    equal(await store.nextAt(QUEUE), start + 100 + LEASE_MS);
    await store.heartbeat([job], 60_000);
    equal(await store.nextAt(QUEUE), start + 5_000);
    await store.cancel({ states: ["scheduled"] });
    equal(await store.nextAt(QUEUE), start + 60_100);
    await store.settle([{ ...job, kind: "complete" }]);
    equal(await store.nextAt(QUEUE), undefined);
  },
};
