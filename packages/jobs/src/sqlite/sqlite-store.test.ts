import { systemClock } from "sluice";
import { named } from "sluice/observe";
import { VirtualClock } from "sluice/testing";
import { expect, it } from "vitest";
import { storeCases } from "../conformance/index.ts";
import type { Claim } from "../job.ts";
import { SqliteStore, type SqliteStoreOptions } from "./sqlite-store.ts";

const cases = storeCases(async (options) => {
  const clock = new VirtualClock({ wallStartAt: Date.UTC(2030, 0, 1) });
  const store = await SqliteStore.open({ path: ":memory:", clock, ...options });
  return { store, clock, dispose: () => store.close() };
});

for (const { title, run } of cases) it(title, run);

it.each([
  [{ path: "" }, 'path must be a file name, got ""'],
  [{ path: 7 as unknown as string }, "path must be a file name, got 7"],
  [{ durability: "some" as "full" }, 'durability must be "full" or "normal", got "some"'],
  [{ busyTimeoutMs: -1 }, "busyTimeoutMs must be an integer >= 0, got -1"],
  [{ procedures: "./procedures.ts" }, 'procedures must be a URL, got "./procedures.ts"'],
  [{ retention: { succeededMs: -1 } }, "retention.succeededMs must be"],
  [{ maxPayloadBytes: 0 }, "maxPayloadBytes must be an integer >= 1, got 0"],
])("refuses %j", async (options: Partial<SqliteStoreOptions>, message) => {
  await expect(SqliteStore.open({ path: ":memory:", ...options })).rejects.toThrow(message);
});

it("takes nothing more once it is closed, and may be closed again", async () => {
  const store = await SqliteStore.open({ path: ":memory:" });
  const under = store.add([{ queue: "mail", payload: 1 }]);
  await Promise.all([store.close(), store.close()]);
  expect(await under).toMatchObject([{ outcome: "created" }]); // it was under way
  const closed = { code: "CLOSED", message: "the job store is closed" };
  const operations = [
    store.now(),
    store.add([{ queue: "mail", payload: 1 }]),
    store.claim({ queue: "mail", max: 1, leaseMs: 1, worker: "w" }),
    store.nextAt("mail"),
    store.prune(),
    store.call("x"),
  ];
  for (const each of await Promise.allSettled(operations)) expect(each).toMatchObject({ reason: closed });
});

it("shows its operations and batches by name", async () => {
  const store = await SqliteStore.open({ path: ":memory:", name: "orders" });
  await Promise.all([1, 2, 3].map((payload) => store.add([{ queue: "mail", payload }])));
  const seen = named().find(({ name }) => name === "orders");
  expect(seen).toMatchObject({ kind: "job-store", stats: { waiting: 0, batches: 1, operations: 3 } });
  await store.close();
});

it("removes a job at its end, though it failed before, and only for the claim that holds it", async () => {
  const store = await SqliteStore.open({ path: ":memory:", retention: { succeededMs: 0 } });
  await store.add([{ queue: "mail", payload: 1 }]);
  const tokens: number[] = [];
  for (const retryInMs of [0, 0]) {
    const [{ id, token } = { id: "", token: 0 }] = await claim(store);
    tokens.push(token);
    expect(await store.settle([{ id, token, kind: "fail", error: "not yet", retryInMs }])).toEqual([true]);
  }
  const complete = (token: number): Promise<boolean[]> => store.settle([{ id: "1", token, kind: "complete" }]);
  const [last] = await claim(store);
  for (const token of tokens) expect(await complete(token)).toEqual([false]);
  expect(await store.get("1")).toMatchObject({ state: "running" });
  expect(await complete(last?.token ?? 0)).toEqual([true]);
  expect(await store.get("1")).toBeUndefined();
  expect(await complete(last?.token ?? 0)).toEqual([false]);
  await store.close();
});

it("lets no old token remove a job that never failed", async () => {
  const store = await SqliteStore.open({ path: ":memory:", retention: { succeededMs: 0 } });
  await store.add([{ queue: "mail", payload: 1 }]);
  const [first] = await claim(store);
  await store.settle([{ id: "1", token: first?.token ?? 0, kind: "release" }]);
  const [second] = await claim(store);
  for (const token of [0, first?.token ?? 0, (second?.token ?? 0) + 1])
    expect(await store.settle([{ id: "1", token, kind: "complete" }])).toEqual([false]);
  expect(await store.get("1")).toMatchObject({ state: "running" });
  await store.close();
});

it("takes a longer way past jobs of a higher priority that are not due, however many", async () => {
  const store = await SqliteStore.open({ path: ":memory:", clock: systemClock });
  const later = Array.from({ length: 100 }, (_, index) => ({
    queue: "mail",
    payload: index,
    priority: 10 - (index % 3),
    delayMs: 60_000,
  }));
  await store.add([...later, { queue: "mail", payload: "low", priority: -5 }, { queue: "mail", payload: "mid" }]);
  const claimed = await store.claim({ queue: "mail", max: 5, leaseMs: 1_000, worker: "w" });
  expect(claimed.map(({ payload }) => payload)).toEqual(["mid", "low"]);
  await store.close();
});

function claim(store: SqliteStore): Promise<Claim[]> {
  return store.claim({ queue: "mail", max: 1, leaseMs: 60_000, worker: "w" });
}
