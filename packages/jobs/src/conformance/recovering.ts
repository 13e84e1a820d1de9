import { deepEqual, equal } from "node:assert/strict";
import { CRASHED, DUPLICATE, poison } from "../reasons.ts";
import { addOne, claim, claimOne, type Facts, LEASE_MS, payloads, QUEUE, read } from "./case.ts";

export const recovering: Facts = {
  "C182: takes a job back whose worker died, as a crash that charges the attempt": async ({ store, clock }) => {
    const id = await addOne(store);
    await claimOne(store);
    await clock.advance(LEASE_MS - 1);
    deepEqual(await store.sweep(), { ready: 0, dead: 0, quarantined: 0, duplicates: 0, ended: [] });
    await clock.advance(1);
    deepEqual(await store.sweep(), { ready: 1, dead: 0, quarantined: 0, duplicates: 0, ended: [] });
    const now = await store.now();
    const { state, attempts, crashes, errors } = await read(store, id);
    deepEqual([state, attempts, crashes], ["ready", 1, 1]);
    deepEqual(errors, [{ at: now, attempt: 1, kind: "crash", message: CRASHED }]);
    equal((await claimOne(store)).attempt, 2);
  },

  "C182: makes a job dead for the crash when its attempts are used up": async ({ store, clock }) => {
    const id = await addOne(store, { maxAttempts: 1, payload: { to: "a" } });
    await claimOne(store);
    await clock.advance(LEASE_MS);
    const dead = { id, queue: QUEUE, payload: { to: "a" }, state: "dead", attempts: 1, reason: CRASHED } as const;
    deepEqual(await store.sweep(), { ready: 0, dead: 1, quarantined: 0, duplicates: 0, ended: [dead] });
    const { state, reason, endedAt, errors } = await read(store, id);
    deepEqual([state, reason, endedAt, errors.length], ["dead", CRASHED, await store.now(), 1]);
  },

  "F03.2: quarantines a job that has crashed three times, though it might run a thousand": async ({ store, clock }) => {
    const id = await addOne(store, { maxAttempts: 1_000 });
    for (let crash = 1; crash <= 3; crash += 1) {
      await claimOne(store);
      await clock.advance(LEASE_MS);
      equal((await store.sweep()).quarantined, crash === 3 ? 1 : 0);
    }
    const { state, reason, crashes, errors } = await read(store, id);
    deepEqual([state, reason, crashes, errors.length], ["quarantined", poison(3), 3, 3]);
    deepEqual(await claim(store, 1), []);
  },

  "F03.2: quarantines at the maxCrashes it is told, counting crashes and not failures": async ({ store, clock }) => {
    const id = await addOne(store, { maxAttempts: 3 });
    await store.settle([{ ...(await claimOne(store)), kind: "fail", error: "no", retryInMs: 0 }]);
    await claimOne(store);
    await clock.advance(LEASE_MS);
    equal((await store.sweep({ maxCrashes: 2 })).ready, 1);
    await claimOne(store);
    await clock.advance(LEASE_MS);
    const { quarantined, ended } = await store.sweep({ maxCrashes: 2 });
    const reason = poison(2);
    deepEqual(
      [quarantined, ended],
      [1, [{ id, queue: QUEUE, payload: null, state: "quarantined", attempts: 3, reason }]],
    );
    equal((await read(store, id)).reason, reason);
  },

  "names those that a crash has ended, also those that are removed at once": {
    options: { retention: { deadMs: 0 } },
    async fact({ store, clock }) {
      await store.add([1, 2, 3].map((payload) => ({ queue: QUEUE, payload, maxAttempts: payload === 2 ? 9 : 1 })));
      await claim(store, 3);
      await clock.advance(LEASE_MS);
      const { ready, dead, ended } = await store.sweep();
      deepEqual(
        [ready, dead, ended.map(({ payload, state }) => [payload, state])],
        [1, 2, [3, 1].map((n) => [n, "dead"])],
      );
      deepEqual(
        (await store.list({})).map(({ payload }) => payload),
        [2],
      );
    },
  },

  "puts a crashed job back in its old place": async ({ store, clock }) => {
    await store.add([1, 2].map((payload) => ({ queue: QUEUE, payload })));
    await claimOne(store);
    await clock.advance(LEASE_MS);
    await store.sweep();
    deepEqual(await payloads(claim(store, 2)), [1, 2]);
  },

  "sweeps only the queue it is told": async ({ store, clock }) => {
    await store.add([QUEUE, "other"].map((queue) => ({ queue, payload: null })));
    await claimOne(store);
    await claimOne(store, { queue: "other" });
    await clock.advance(LEASE_MS);
    equal((await store.sweep({ queue: "other" })).ready, 1);
    deepEqual([(await store.stats(QUEUE)).running, (await store.stats("other")).running], [1, 0]);
    equal((await store.sweep()).ready, 1);
  },

  "C169: leaves alone what was settled while the sweep was due": async ({ store, clock }) => {
    const id = await addOne(store);
    const job = await claimOne(store);
    await clock.advance(LEASE_MS);
    const [answers, swept] = await Promise.all([store.settle([{ ...job, kind: "complete" }]), store.sweep()]);
    deepEqual([answers, swept.ready], [[true], 0]);
    const before = await read(store, id);
    await clock.advance(LEASE_MS);
    await store.sweep();
    deepEqual(await read(store, id), before);
    equal(before.state, "succeeded");
  },

  "C169: leaves alone what was claimed afresh": async ({ store, clock }) => {
    const id = await addOne(store);
    await claimOne(store);
    await clock.advance(LEASE_MS);
    const [first, current, second] = await Promise.all([store.sweep(), claimOne(store), store.sweep()]);
    deepEqual([first.ready, second.ready], [1, 0]);
    const { state, attempts, crashes } = await read(store, id);
    deepEqual([state, attempts, crashes], ["running", 2, 1]);
    deepEqual(await store.settle([{ ...current, kind: "complete" }]), [true]);
  },

  "C172: closes the one whose key a newer job holds, and recovers the others in the same sweep": async ({
    store,
    clock,
  }) => {
    const stuck = [1, 2, 3, 4, 5].map((payload) => ({ queue: QUEUE, payload, uniqueKey: `key ${payload}` }));
    await store.add(stuck);
    await claim(store, 5);
    await clock.advance(LEASE_MS);
    const newer = await addOne(store, { payload: "newer", uniqueKey: "key 3" });
    deepEqual(await store.sweep(), { ready: 4, dead: 0, quarantined: 0, duplicates: 1, ended: [] });
    const [closed] = await store.list({ states: ["cancelled"] });
    deepEqual([closed?.payload, closed?.reason, closed?.errors.length], [3, DUPLICATE, 1]);
    equal(closed?.endedAt, await store.now());
    equal((await read(store, newer)).state, "ready");
    deepEqual(await payloads(claim(store, 10)), [1, 2, 4, 5, "newer"]);
  },

  "F03.1: a heartbeat keeps the job, and its lease starts anew": async ({ store, clock }) => {
    await addOne(store);
    const job = await claimOne(store);
    for (let beat = 0; beat < 5; beat += 1) {
      await clock.advance(LEASE_MS - 1);
      deepEqual(await store.heartbeat([job], LEASE_MS), [true]);
      equal((await store.sweep()).ready, 0);
    }
    await clock.advance(LEASE_MS);
    equal((await store.sweep()).ready, 1);
  },

  "F03.1: of two attempts at one job exactly one is settled": async ({ store, clock }) => {
    await addOne(store);
    const paused = await claimOne(store);
    await clock.advance(LEASE_MS);
    await store.sweep();
    const second = await claimOne(store);
    const answers = await store.settle([
      { ...paused, kind: "complete", result: "paused" },
      { ...second, kind: "complete", result: "second" },
      { ...paused, kind: "complete", result: "paused" },
    ]);
    deepEqual(answers, [false, true, false]);
    equal((await read(store, second.id)).result, "second");
  },

  "revives a lapsed lease that nobody has taken, and answers for each claim": async ({ store, clock }) => {
    await store.add([1, 2].map((payload) => ({ queue: QUEUE, payload })));
    const [one, two] = await claim(store, 2);
    await store.settle([{ ...two!, kind: "complete" }]);
    await clock.advance(LEASE_MS * 2);
    const unknown = { id: "999999", token: 1 };
    deepEqual(await store.heartbeat([two!, one!, unknown, { ...one!, token: one!.token + 1 }], 500), [
      false,
      true,
      false,
      false,
    ]);
    equal((await store.sweep()).ready, 0);
    await clock.advance(500);
    equal((await store.sweep()).ready, 1);
  },
};
