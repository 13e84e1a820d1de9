import { expect, it } from "vitest";
import { retry, type Retry } from "../../resilience/retry.ts";
import { hedge } from "../../resilience/hedge.ts";
import { VirtualClock } from "../../testing/virtual-clock.ts";
import { doctor, type DoctorOptions } from "../doctor.ts";
import type { Report } from "../report.ts";

const clock = new VirtualClock();

function look(options: DoctorOptions = {}): Report[] {
  return doctor({ clock, ...options }).filter(({ id }) => id === "H06");
}

function retryOf(name: string, retries: number, dependency?: string): Retry {
  return retry({ name, dependency, retries, classify: () => "retry", baseMs: 1, clock });
}

function fail(): never {
  throw new Error("down");
}

interface Failing {
  run(fn: () => never): Promise<never>;
}

/** So many calls through one within the other, all of which fail. */
async function failThrough(outer: Retry, inner: Failing, calls: number): Promise<void> {
  const runs = Array.from({ length: calls }, () => outer.run(() => inner.run(fail)));
  const settled = Promise.allSettled(runs);
  await clock.runToIdle();
  await settled;
}

it("F05.4: H06 names the layers whose attempts multiply before one dependency", async () => {
  const [gateway, client] = [retryOf("gateway", 2, "orders"), retryOf("client", 3, "orders")];
  await failThrough(gateway, client, 10);
  expect(look()).toMatchObject([
    {
      failureModes: ["F05.4"],
      subject: { kind: "dependency", name: "orders" },
      evidence: 'dependency "orders" is called 12 times for each call, by retry "gateway" × 3, retry "client" × 4',
      facts: { calls: 12, layers: 2 },
    },
  ]);
  expect(look({ maxAmplification: 12 })).toEqual([]);
});

it("F05.4: H06 doesn't multiply what two layers beside each other do to one dependency", async () => {
  const [search, basket] = [retryOf("search", 3, "stock"), retryOf("basket", 3, "stock")];
  const direct = { run: async (fn: () => never) => fn() };
  await Promise.all([failThrough(search, direct, 10), failThrough(basket, direct, 10)]);
  expect(look().find(({ subject }) => subject.name === "stock")).toMatchObject({
    evidence: 'dependency "stock" is called 4 times for each call, by retry "search" × 4, retry "basket" × 4',
    facts: { calls: 4, layers: 2 },
  });
});

it("J39: H06 tells of three layers of four attempts that they make 64 calls of one", async () => {
  const layers = ["edge", "api", "store"].map((name) => retryOf(name, 3, "database"));
  const [edge, api, store] = layers as [Retry, Retry, Retry];
  await failThrough(edge, { run: (fn: () => never) => api.run(() => store.run(fn)) }, 10);
  expect(look().find(({ subject }) => subject.name === "database")?.facts).toEqual({ calls: 64, layers: 3 });
  expect(layers).toHaveLength(3);
});

it("K06: H06 tells of one layer, too, if nothing bounds what it adds, and for no longer than it does so", async () => {
  const policy = retryOf("storm", 5);
  const call = async (fn: () => unknown): Promise<void> => {
    const runs = Promise.allSettled(Array.from({ length: 20 }, () => policy.run(fn)));
    await clock.runToIdle();
    await runs;
  };
  await call(() => 1);
  expect(look().filter(({ subject }) => subject.name === "storm")).toEqual([]);
  await call(fail);
  expect(look()).toMatchObject([{ subject: { kind: "retry", name: "storm" }, facts: { calls: 6, layers: 1 } }]);
  for (let n = 0; n < 8; n += 1) {
    await clock.advance(1_000);
    await call(() => 1);
    look();
  }
  expect(look().filter(({ subject }) => subject.name === "storm")).toEqual([]);
});

it("counts what a hedge adds, and leaves alone what has made too few calls to tell", async () => {
  const policy = hedge({ name: "reads", dependency: "replica", hedgeAfterMs: 1, clock });
  const client = retryOf("reader", 3, "replica");
  const hedged = { run: (fn: () => never) => policy.run(fn) };
  await failThrough(client, hedged, 9);
  expect(look().filter(({ subject }) => subject.name === "replica")).toEqual([]);
  await failThrough(client, hedged, 10);
  const report = look().find(({ subject }) => subject.name === "replica");
  expect(report?.evidence).toBe(
    'dependency "replica" is called 8 times for each call, by hedge "reads" × 2, retry "reader" × 4',
  );
});
