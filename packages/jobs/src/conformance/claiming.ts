import { deepEqual, equal, ok } from "node:assert/strict";
import { addOne, claim, claimOne, complete, type Facts, LEASE_MS, payloads, QUEUE, read } from "./case.ts";

const DAY_MS = 86_400_000;

export const claiming: Facts = {
  "takes jobs by priority, then due time, then arrival": async ({ store, clock }) => {
    const now = await store.now();
    await store.add([
      { queue: QUEUE, payload: "5th", runAt: now },
      { queue: QUEUE, payload: "4th", runAt: now - 1 },
      { queue: QUEUE, payload: "6th", runAt: now },
      { queue: QUEUE, payload: "3rd", priority: 1, runAt: now + 50 },
      { queue: QUEUE, payload: "2nd", priority: 1, runAt: now + 49 },
      { queue: QUEUE, payload: "7th", priority: -1, runAt: now - 1_000 },
      { queue: QUEUE, payload: "1st", priority: 1000 },
      { queue: QUEUE, payload: "not yet", priority: 1000, runAt: now + 51 },
    ]);
    await clock.advance(50);
    deepEqual(await payloads(claim(store, 2)), ["1st", "2nd"]);
    deepEqual(await payloads(claim(store, 10)), ["3rd", "4th", "5th", "6th", "7th"]);
  },

  "takes no more than max, only from the queue, and each job once": async ({ store }) => {
    await store.add([1, 2, 3].map((payload) => ({ queue: QUEUE, payload })));
    await addOne(store, { queue: "other" });
    const found = await Promise.all([claim(store, 1), claim(store, 1), claim(store, 5), claim(store, 5)]);
    deepEqual(
      found
        .flat()
        .map(({ payload }) => payload as number)
        .toSorted((a, b) => a - b),
      [1, 2, 3],
    );
    deepEqual(
      found.slice(0, 2).map((jobs) => jobs.length),
      [1, 1],
    );
    deepEqual(await claim(store, 5, { queue: "nobody's" }), []);
  },

  "hands out all that the handler needs, with the lease on the store's clock": async ({ store, clock }) => {
    const id = await addOne(store, { payload: { to: "a" }, maxAttempts: 9, delayMs: 10 });
    const addedAt = await store.now();
    await clock.advance(500);
    const job = await claimOne(store);
    const { token, ...rest } = job;
    ok(Number.isSafeInteger(token));
    deepEqual(rest, {
      id,
      queue: QUEUE,
      payload: { to: "a" },
      attempt: 1,
      maxAttempts: 9,
      addedAt,
      runAt: addedAt + 10,
      leaseUntil: addedAt + 500 + LEASE_MS,
    });
    const { state, attempts } = await read(store, id);
    deepEqual([state, attempts], ["running", 1]);
  },

  "gives tokens that grow with every claim, whatever the queue": async ({ store }) => {
    await store.add([QUEUE, "other", QUEUE].map((queue) => ({ queue, payload: null })));
    const jobs = [
      ...(await claim(store, 1)),
      ...(await claim(store, 1, { queue: "other" })),
      ...(await claim(store, 1)),
    ];
    await store.settle([{ ...jobs[0]!, kind: "release" }]);
    const tokens = [...jobs, await claimOne(store)].map(({ token }) => token);
    deepEqual(
      tokens,
      [...new Set(tokens)].toSorted((a, b) => a - b),
    );
  },

  "C149: hands out jobs due in 25, 30 and 400 days once each, at their time, and cancels one at any moment": async ({
    store,
    clock,
  }) => {
    await store.add([25, 30, 400].map((days) => ({ queue: QUEUE, payload: days, delayMs: days * DAY_MS })));
    const cancelled = await addOne(store, { payload: "cancelled", delayMs: 30 * DAY_MS });
    const found: unknown[] = [];
    let day = 0;
    await clock.advance(1_000);
    deepEqual(await claim(store, 10), []);
    for (const until of [25, 29, 30, 399, 400, 900]) {
      await clock.advance((until - day) * DAY_MS - 1_001);
      found.push(...(await payloads(claim(store, 10))));
      await clock.advance(1_001);
      day = until;
      if (day === 29) equal(await store.cancel({ ids: [cancelled] }), 1);
      const claimed = await claim(store, 10);
      found.push(...claimed.map(({ payload }) => [day, payload]));
      await store.settle(complete(claimed));
    }
    deepEqual(found, [
      [25, 25],
      [30, 30],
      [400, 400],
    ]);
  },

  "C154: hands a job out once though its delay is longer than the lease": async ({ store, clock }) => {
    await addOne(store, { delayMs: 300_000 });
    const found: unknown[] = [];
    for (let second = 0; second < 400; second += 10) {
      for (let consumer = 0; consumer < 3; consumer += 1) {
        await store.sweep();
        const claimed = await claim(store, 1, { leaseMs: 60_000 });
        found.push(...claimed.map(() => second));
        await store.settle(complete(claimed));
      }
      await clock.advance(10_000);
    }
    deepEqual(found, [300]);
  },
};
