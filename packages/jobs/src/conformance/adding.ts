import { deepEqual, equal, ok } from "node:assert/strict";
import type { Json } from "../job.ts";
import { addOne, claim, claimOne, type Facts, payloads, QUEUE, read } from "./case.ts";

export const adding: Facts = {
  "gives each new job an id of its own that grows with arrival": async ({ store }) => {
    const first = await store.add([{ queue: QUEUE, payload: 1 }]);
    const more = await store.add([
      { queue: "other", payload: 2 },
      { queue: QUEUE, payload: 3 },
    ]);
    const added = [...first, ...more];
    deepEqual(
      added.map(({ outcome }) => outcome),
      ["created", "created", "created"],
    );
    const numbers = added.map(({ id }) => Number(id));
    deepEqual(
      numbers,
      numbers.toSorted((a, b) => a - b),
    );
    equal(new Set(numbers).size, 3);
  },

  "adds nothing and answers nothing for an empty batch": async ({ store }) => {
    deepEqual(await store.add([]), []);
    deepEqual(await store.list({}), []);
  },

  "records a new job with its defaults": async ({ store }) => {
    const id = await addOne(store);
    const now = await store.now();
    deepEqual(await read(store, id), {
      id,
      queue: QUEUE,
      state: "ready",
      payload: null,
      priority: 0,
      attempts: 0,
      maxAttempts: 4,
      crashes: 0,
      uniqueKey: undefined,
      addedAt: now,
      runAt: now,
      endedAt: undefined,
      result: undefined,
      errors: [],
      reason: undefined,
    });
  },

  "gives back every payload as it was added": async ({ store }) => {
    const all: Json[] = [null, true, 0, -1.5, 2 ** 53, "", 'a "b"\n\u0000\ud83d\ude00', [], {}, [[1, { a: [null] }]]];
    all.push({ "": 1, "a.b": { c: "d" }, ["__proto__"]: "own" }, "\ud800", 1e-300);
    await store.add(all.map((payload) => ({ queue: QUEUE, payload })));
    deepEqual(await payloads(store.list({})), all);
    deepEqual(await payloads(claim(store, 100)), all);
  },

  "leaves out properties that are undefined": async ({ store }) => {
    const id = await addOne(store, { payload: { a: 1, b: undefined } });
    deepEqual((await read(store, id)).payload, { a: 1 });
  },

  "keeps the payload whatever happens to the object it was given or gave out": async ({ store }) => {
    const payload = { list: [1] };
    const id = await addOne(store, { payload });
    payload.list.push(2);
    const out = (await read(store, id)).payload as typeof payload;
    out.list.push(3);
    deepEqual((await claimOne(store)).payload, { list: [1] });
  },

  "makes a job ready after delayMs, rounded up, and at runAt": async ({ store, clock }) => {
    const now = await store.now();
    const delayed = await addOne(store, { delayMs: 99.5 });
    const dated = await addOne(store, { runAt: now + 100 });
    const past = await addOne(store, { runAt: 5 });
    const seen = async (): Promise<string[]> =>
      Promise.all([delayed, dated, past].map(async (id) => (await read(store, id)).state));
    deepEqual([(await read(store, delayed)).runAt, (await read(store, dated)).runAt], [now + 100, now + 100]);
    await clock.advance(99);
    deepEqual(await seen(), ["scheduled", "scheduled", "ready"]);
    await clock.advance(1);
    deepEqual(await seen(), ["ready", "ready", "ready"]);
  },

  "C152: four equal jobs that are due in one instant are four jobs": async ({ store, clock }) => {
    const job = { queue: QUEUE, payload: { same: true }, delayMs: 1_000 };
    await store.add([job, job]);
    await store.add([job]);
    await store.add([job]);
    await clock.advance(1_000);
    const claimed = await claim(store, 10);
    equal(new Set(claimed.map(({ id }) => id)).size, 4);
    equal(claimed.length, 4);
  },

  "takes a payload up to the limit, counted in bytes of JSON": {
    options: { maxPayloadBytes: 100 },
    fact: async ({ store }) => {
      await addOne(store, { payload: "a".repeat(98) });
      await addOne(store, { payload: "é".repeat(49) });
      for (const payload of ["a".repeat(99), "é".repeat(50), "a".repeat(1_000)]) {
        const error = await store.add([{ queue: QUEUE, payload }]).catch((reason: unknown) => reason);
        ok(error instanceof RangeError);
        ok(error.message.includes("jobs[0].payload") && error.message.includes("100"));
      }
      equal((await store.list({})).length, 2);
    },
  },

  "takes a payload of one MiB unless told otherwise": async ({ store }) => {
    const id = await addOne(store, { payload: "a".repeat(2 ** 20 - 2) });
    equal((await read(store, id)).payload, "a".repeat(2 ** 20 - 2));
    const error = await store.add([{ queue: QUEUE, payload: "a".repeat(2 ** 20 - 1) }]).catch((why: unknown) => why);
    ok(error instanceof RangeError);
  },
};
