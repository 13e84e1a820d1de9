import { deepEqual, ok } from "node:assert/strict";
import type { Claim, NewJob } from "../job.ts";
import type { JobFilter, Settlement, Store } from "../store.ts";
import { addOne, claim, claimOne, type Facts, LEASE_MS, QUEUE } from "./case.ts";

/** What TypeScript would refuse, a caller may still pass. */
// oxlint-disable-next-line typescript/no-explicit-any -- these are wrong on purpose
type Wrong = any;

/** What the message must name, and what is wrong. */
const JOBS: readonly (readonly [string, Wrong])[] = [
  ["jobs[1] ", null],
  ["jobs[1] ", { queue: QUEUE, payload: null, delay: 5 }],
  ["jobs[1].queue", { queue: undefined, payload: null }],
  ["jobs[1].queue", { queue: "", payload: null }],
  ["jobs[1].queue", { queue: "a\nb", payload: null }],
  ["jobs[1].queue", { queue: "\ud800", payload: null }],
  ["jobs[1].queue", { queue: "a".repeat(256), payload: null }],
  ["jobs[1].payload", { queue: QUEUE }],
  ...badPayloads(),
  ...[-1, Number.NaN, Infinity, 1e300, "5", null].map((delayMs) => ["jobs[1].delayMs", { delayMs }] as const),
  ...[-1, 1.5, Number.NaN, Infinity, 2 ** 53, "5", null].map((runAt) => ["jobs[1].runAt", { runAt }] as const),
  ["delayMs", { delayMs: 1, runAt: 1 }],
  ...[1001, -1001, 0.5, Number.NaN, "1"].map((priority) => ["jobs[1].priority", { priority }] as const),
  ...[0, -1, 1.5, Infinity, "1"].map((maxAttempts) => ["jobs[1].maxAttempts", { maxAttempts }] as const),
  ...["", 5, null, "a\u0000", "a".repeat(256)].map((uniqueKey) => ["jobs[1].uniqueKey", { uniqueKey }] as const),
  ...["drop", null, Object.create(null)].map((onConflict) => ["jobs[1].onConflict", { onConflict }] as const),
];

const SETTLEMENTS: readonly (readonly [string, Wrong])[] = [
  ["settlements[0]", null],
  ["settlements[0].id", { id: 5 }],
  ["settlements[0].token", { token: "1" }],
  ["settlements[0].token", { token: 1.5 }],
  ["settlements[0].kind", { kind: "drop" }],
  ["settlements[0].result", { kind: "complete", result: Number.NaN }],
  ["settlements[0].result.at", { kind: "complete", result: { at: new URL("http://a.example") } }],
  ["settlements[0].error", { kind: "fail" }],
  ["settlements[0].error", { kind: "fail", error: "\udc00" }],
  ["settlements[0].retryInMs", { kind: "fail", error: "", retryInMs: -1 }],
  ["settlements[0].retryInMs", { kind: "fail", error: "", retryInMs: Infinity }],
  ["settlements[0].delayMs", { kind: "snooze" }],
  ["settlements[0].delayMs", { kind: "snooze", delayMs: Number.NaN }],
  ["settlements[0].reason", { kind: "snooze", delayMs: 1, reason: 5 }],
];

export const refusing: Facts = {
  "adds nothing of a batch with a bad job, and names what is wrong": async ({ store }) => {
    for (const [name, job] of JOBS) {
      const full = job === null || "queue" in job ? job : { queue: QUEUE, payload: null, ...job };
      await refuses(() => store.add([{ queue: QUEUE, payload: null, uniqueKey: "free" }, full]), name);
    }
    await refuses(() => store.add({ queue: QUEUE, payload: null } as Wrong), "jobs");
    deepEqual(await store.list({}), []);
  },

  "settles nothing of a batch with a bad settlement, and names what is wrong": async ({ store }) => {
    await addOne(store);
    const held = await claimOne(store);
    for (const [name, change] of SETTLEMENTS) {
      const bad: Wrong = change === null ? null : { ...held, ...change };
      await refuses(() => store.settle([bad as Settlement]), name);
      await refuses(() => store.settle([bad as Settlement, { ...held, kind: "complete" }]), name);
    }
    await refuses(() => store.settle(undefined as Wrong), "settlements");
    deepEqual(
      (await store.list({})).map(({ state }) => state),
      ["running"],
    );
  },

  "refuses bad claims, heartbeats, sweeps, filters and pages": async ({ store }) => {
    await addOne(store);
    const held = await claimOne(store);
    await addOne(store);
    for (const max of [0, -1, 1.5, Infinity, "1"] as Wrong[]) await refuses(() => claim(store, max), "max");
    for (const leaseMs of [0, -1, 1.5, Infinity, "1"] as Wrong[]) {
      await refuses(() => claim(store, 1, { leaseMs }), "leaseMs");
      await refuses(() => store.heartbeat([held], leaseMs as number), "leaseMs");
    }
    await refuses(() => claim(store, 1, { queue: "" }), "queue");
    await refuses(() => claim(store, 1, { worker: 5 as Wrong }), "worker");
    await refuses(() => store.heartbeat([held, { id: "1" } as Claim], LEASE_MS), "claims[1].token");
    await refuses(() => store.sweep({ maxCrashes: 0 }), "maxCrashes");
    await refuses(() => store.sweep({ queue: "" }), "queue");
    await refuses(() => store.nextAt(""), "queue");
    await refuses(() => store.stats(5 as Wrong), "queue");
    await refuses(() => store.list({}, { limit: 0 }), "limit");
    await refuses(() => store.list({}, { limit: 1001 }), "limit");
    await refuses(() => store.list({}, { after: "x" }), "after");
    for (const name of ["list", "redrive", "cancel"] as const) {
      const act = (filter: JobFilter): Promise<unknown> => store[name](filter);
      await refuses(() => act({ queue: "" }), "filter.queue");
      await refuses(() => act({ states: ["waiting"] as Wrong }), "filter.states[0]");
      await refuses(() => act({ ids: [5] as Wrong }), "filter.ids[0]");
      await refuses(() => act({ queues: QUEUE } as Wrong), "filter");
    }
    await refuses(() => store.redrive({}), "filter");
    await refuses(() => store.cancel({}), "filter");
    deepEqual(
      (await store.list({})).map(({ state }) => state),
      ["running", "ready"],
    );
  },
};

function badPayloads(): (readonly [string, NewJob])[] {
  const cycle: Wrong = { a: [{}] };
  cycle.a[0].b = cycle;
  const deep = Array.from({ length: 1_000 }).reduce<Wrong>((inner) => [inner], null);
  const all: readonly (readonly [string, Wrong])[] = [
    ["jobs[1].payload ", undefined],
    ["jobs[1].payload ", () => 1],
    ["jobs[1].payload ", Symbol("s")],
    ["jobs[1].payload ", 10n],
    ["jobs[1].payload ", Number.NaN],
    ["jobs[1].payload ", new Map()],
    ["jobs[1].payload[1]", [1, undefined]],
    ["jobs[1].payload[0]", Array(1)],
    ["jobs[1].payload.a[1].b", { a: [1, { b: Infinity }] }],
    ["jobs[1].payload.at", { at: new URL("http://a.example") }],
    ["jobs[1].payload.fn", { fn() {} }],
    ["jobs[1].payload.toJSON", { toJSON: () => 1 }],
    ["jobs[1].payload.toJSON", Object.assign([1], { toJSON: () => undefined })],
    ["jobs[1].payload.toJSON", Object.defineProperty({}, "toJSON", { value: () => 5 })],
    ["jobs[1].payload.big", { big: 1n }],
    ["jobs[1].payload.a[0].b", cycle],
    ["jobs[1].payload[0][0]", deep],
  ];
  return all.map(([name, payload]) => [name, { queue: QUEUE, payload }]);
}

async function refuses(act: (store?: Store) => Promise<unknown>, name: string): Promise<void> {
  let error: unknown;
  try {
    await act();
  } catch (reason) {
    error = reason;
  }
  ok(error instanceof TypeError || error instanceof RangeError, `${name}: expected an error, got ${String(error)}`);
  ok(error.message.startsWith(name) || error.message.includes(` ${name}`), `${error.message} names ${name}`);
}
