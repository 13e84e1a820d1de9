import { deepEqual, equal, ok } from "node:assert/strict";
import { addOne, claim, claimOne, complete, type Facts, LEASE_MS, payloads, QUEUE, read } from "./case.ts";

export const settling: Facts = {
  "keeps what the handler returned": async ({ store, clock }) => {
    const id = await addOne(store);
    const job = await claimOne(store);
    await clock.advance(5);
    deepEqual(await store.settle([{ ...job, kind: "complete", result: { sent: [1] } }]), [true]);
    const { state, result, endedAt, attempts, reason } = await read(store, id);
    deepEqual([state, result, attempts, reason], ["succeeded", { sent: [1] }, 1, undefined]);
    equal(endedAt, await store.now());
  },

  "answers for each settlement of a batch, in order, and takes the first of two": async ({ store }) => {
    await store.add([1, 2].map((payload) => ({ queue: QUEUE, payload })));
    const [one, two] = await claim(store, 2);
    const answers = await store.settle([
      { ...two!, kind: "complete" },
      { ...one!, kind: "fail", error: "first" },
      { ...two!, kind: "fail", error: "second" },
      { id: "999999", token: 1, kind: "complete" },
      { id: "no id", token: 1, kind: "complete" },
    ]);
    deepEqual(answers, [true, true, false, false, false]);
    deepEqual([(await read(store, one!.id)).state, (await read(store, two!.id)).state], ["dead", "succeeded"]);
  },

  "refuses every kind of settlement and a heartbeat once another attempt has the job": async ({ store, clock }) => {
    const id = await addOne(store);
    const old = await claimOne(store);
    await clock.advance(LEASE_MS);
    await store.sweep();
    const current = await claimOne(store);
    const before = await read(store, id);
    const answers = await store.settle([
      { ...old, kind: "complete" },
      { ...old, kind: "fail", error: "late", retryInMs: 0 },
      { ...old, kind: "snooze", delayMs: 5 },
      { ...old, kind: "release" },
    ]);
    deepEqual([...answers, ...(await store.heartbeat([old], 60_000))], [false, false, false, false, false]);
    deepEqual(await read(store, id), before);
    deepEqual(await store.settle([{ ...current, kind: "complete" }]), [true]);
  },

  "refuses the old token from the sweep on, before anybody has the job again": async ({ store, clock }) => {
    const id = await addOne(store);
    const old = await claimOne(store);
    await clock.advance(LEASE_MS);
    await store.sweep();
    deepEqual(await store.settle([{ ...old, kind: "complete" }]), [false]);
    deepEqual(await store.heartbeat([old], LEASE_MS), [false]);
    equal((await read(store, id)).state, "ready");
  },

  "lets the holder of a lapsed lease settle, as nobody else has the job": async ({ store, clock }) => {
    const id = await addOne(store);
    const job = await claimOne(store);
    await clock.advance(LEASE_MS * 10);
    deepEqual(await claim(store, 1), []);
    deepEqual(await store.settle([{ ...job, kind: "complete" }]), [true]);
    deepEqual(await store.sweep(), { ready: 0, dead: 0, quarantined: 0, duplicates: 0, ended: [] });
    equal((await read(store, id)).crashes, 0);
  },

  "retries a failed job when it was told to, and keeps every error": async ({ store, clock }) => {
    const id = await addOne(store, { maxAttempts: 3 });
    const start = await store.now();
    await store.settle([{ ...(await claimOne(store)), kind: "fail", error: "one", retryInMs: 99.5 }]);
    const { state, runAt, attempts, endedAt } = await read(store, id);
    deepEqual([state, runAt, attempts, endedAt], ["scheduled", start + 100, 1, undefined]);
    deepEqual(await claim(store, 1), []);
    await clock.advance(100);
    const second = await claimOne(store);
    equal(second.attempt, 2);
    await store.settle([{ ...second, kind: "fail", error: "two", retryInMs: 0 }]);
    await store.settle([{ ...(await claimOne(store)), kind: "fail", error: "three", retryInMs: 10 }]);
    const dead = await read(store, id);
    deepEqual([dead.state, dead.reason, dead.attempts, dead.endedAt], ["dead", "three", 3, start + 100]);
    deepEqual(dead.errors, [
      { at: start, attempt: 1, kind: "failure", message: "one" },
      { at: start + 100, attempt: 2, kind: "failure", message: "two" },
      { at: start + 100, attempt: 3, kind: "failure", message: "three" },
    ]);
  },

  "keeps what people are told character by character, the null character too": async ({ store }) => {
    const text = 'a\u0000b \u{1F600} "\n';
    const id = await addOne(store);
    await store.settle([{ ...(await claimOne(store)), kind: "snooze", delayMs: 0, reason: text }]);
    equal((await read(store, id)).reason, text);
    await store.settle([{ ...(await claimOne(store)), kind: "fail", error: text }]);
    const { reason, errors } = await read(store, id);
    deepEqual([reason, errors.map(({ message }) => message)], [text, [text]]);
  },

  "refuses ids and tokens that no store gives, however odd": async ({ store }) => {
    const id = await addOne(store);
    const { token } = await claimOne(store);
    const odd = [
      { id: "-1", token },
      { id: "9".repeat(40), token },
      { id: `${id}.0`, token },
      { id, token: 2 ** 53 - 1 },
      { id, token: 0 },
    ];
    deepEqual(
      await store.settle(complete(odd)),
      odd.map(() => false),
    );
    deepEqual(
      await store.heartbeat(odd, LEASE_MS),
      odd.map(() => false),
    );
    deepEqual(await store.settle(complete([{ id, token }])), [true]);
  },

  "makes a job that fails without a retry dead, though attempts are left": async ({ store }) => {
    const id = await addOne(store);
    await store.settle([{ ...(await claimOne(store)), kind: "fail", error: "never" }]);
    const { state, reason, errors } = await read(store, id);
    deepEqual([state, reason, errors.length], ["dead", "never", 1]);
  },

  "puts a retried job behind those that were due before": async ({ store, clock }) => {
    await store.add([1, 2].map((payload) => ({ queue: QUEUE, payload })));
    const first = await claimOne(store);
    await clock.advance(1);
    await store.settle([{ ...first, kind: "fail", error: "again", retryInMs: 0 }]);
    deepEqual(await payloads(claim(store, 2)), [2, 1]);
  },

  "does not charge an attempt that was snoozed or released": async ({ store, clock }) => {
    const id = await addOne(store, { maxAttempts: 1 });
    for (let round = 0; round < 5; round += 1) {
      const snoozed = await claimOne(store);
      await store.settle([{ ...snoozed, kind: "snooze", delayMs: 9.5, reason: "busy" }]);
      const { state, reason, attempts } = await read(store, id);
      deepEqual([state, reason, attempts], ["scheduled", "busy", 0]);
      await clock.advance(10);
      const released = await claimOne(store);
      deepEqual([snoozed.attempt, released.attempt], [1, 1]);
      await store.settle([{ ...released, kind: "release" }]);
      equal((await read(store, id)).reason, undefined);
    }
    deepEqual((await read(store, id)).errors, []);
    await store.settle([{ ...(await claimOne(store)), kind: "complete" }]);
  },

  "puts a released job back in its old place": async ({ store, clock }) => {
    await store.add([1, 2].map((payload) => ({ queue: QUEUE, payload })));
    const { runAt } = await read(store, (await store.list({}))[0]!.id);
    const first = await claimOne(store);
    await clock.advance(500);
    await addOne(store, { payload: 3 });
    await store.settle([{ ...first, kind: "release" }]);
    equal((await read(store, first.id)).runAt, runAt);
    deepEqual(await payloads(claim(store, 3)), [1, 2, 3]);
  },

  "changes nothing when one settlement of a batch is bad": async ({ store }) => {
    await store.add([1, 2].map((payload) => ({ queue: QUEUE, payload })));
    const [one, two] = await claim(store, 2);
    const error = await store
      .settle([
        { ...one!, kind: "complete" },
        { ...two!, kind: "fail", error: "no", retryInMs: -1 },
      ])
      .catch((reason: unknown) => reason);
    ok(error instanceof RangeError && error.message.includes("settlements[1].retryInMs"));
    deepEqual([(await read(store, one!.id)).state, (await read(store, two!.id)).state], ["running", "running"]);
  },

  "takes a result up to the payload's limit": {
    options: { maxPayloadBytes: 100 },
    fact: async ({ store }) => {
      const id = await addOne(store);
      const job = await claimOne(store);
      const error = await store
        .settle([{ ...job, kind: "complete", result: "a".repeat(99) }])
        .catch((reason: unknown) => reason);
      ok(error instanceof RangeError);
      deepEqual(await store.settle([{ ...job, kind: "complete", result: "a".repeat(98) }]), [true]);
      equal((await read(store, id)).result, "a".repeat(98));
    },
  },
};
