import { VirtualClock } from "sluice/testing";
import { expect, it } from "vitest";
import { Jobs } from "./client.ts";
import { MemoryStore } from "./memory/memory-store.ts";

const LEASE_MS = 1_000;

function open(): { jobs: Jobs; store: MemoryStore; clock: VirtualClock } {
  const clock = new VirtualClock();
  const store = new MemoryStore({ clock });
  return { jobs: new Jobs(store), store, clock };
}

it("adds one job, with its options", async () => {
  const { jobs } = open();
  const { id, outcome } = await jobs.add(
    "mail",
    { to: "a" },
    { priority: 3, delayMs: 50, maxAttempts: 2, uniqueKey: "k" },
  );
  expect(outcome).toBe("created");
  const wanted = { queue: "mail", payload: { to: "a" }, priority: 3, runAt: 50, maxAttempts: 2, uniqueKey: "k" };
  expect(await jobs.get(id)).toMatchObject(wanted);
  expect(await jobs.add("mail", { to: "b" }, { uniqueKey: "k" })).toEqual({ id, outcome: "existing" });
});

it("adds many jobs with the same options, all of them or none", async () => {
  const { jobs } = open();
  const added = await jobs.addMany("mail", [1, 2, 3], { priority: 5 });
  expect(added.map(({ outcome }) => outcome)).toEqual(["created", "created", "created"]);
  await expect(jobs.addMany("mail", [4, NaN])).rejects.toThrow("jobs[1].payload must be a finite number, got NaN");
  expect((await jobs.list()).map(({ payload, priority }) => [payload, priority])).toEqual([1, 2, 3].map((n) => [n, 5]));
});

it("refuses a transaction where it could only fail after the commit, and where the store has none", async () => {
  const { jobs } = open();
  const transaction = {};
  const unsafe = { transaction } as object;
  await expect(jobs.add("mail", 1, unsafe)).rejects.toThrow("got transaction");
  await expect(jobs.addMany("mail", [1], unsafe)).rejects.toThrow("got transaction");
  expect(() => jobs.addWithin(transaction, "mail", 1)).toThrow("transaction can't be used: the store has none");
  expect(await jobs.list()).toEqual([]);
});

it("lists, counts, cancels and redrives", async () => {
  const { jobs, store } = open();
  await jobs.addMany("mail", ["dies", "waits", "waits"]);
  const [job] = await store.claim({ queue: "mail", max: 1, leaseMs: LEASE_MS, worker: "w" });
  await store.settle([{ ...job!, kind: "fail", error: "no" }]);
  expect(await jobs.stats("mail")).toMatchObject({ dead: 1, ready: 2 });
  expect(await jobs.list({ queue: "mail" }, { limit: 2 })).toMatchObject([{ payload: "dies" }, { payload: "waits" }]);
  expect(await jobs.cancel({ states: ["ready"] })).toBe(2);
  expect(await jobs.redrive({ states: ["dead"] })).toEqual({ redriven: 1, duplicates: 0 });
  expect(await jobs.list({ states: ["ready"] })).toMatchObject([{ payload: "dies" }]);
});
