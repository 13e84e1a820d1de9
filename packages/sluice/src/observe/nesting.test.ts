import { expect, it, vi } from "vitest";
import { compose } from "../resilience/compose.ts";
import { failover } from "../resilience/failover.ts";
import { hedge } from "../resilience/hedge.ts";
import { retry, type Retry } from "../resilience/retry.ts";
import { timeout } from "../resilience/timeout.ts";
import { turn } from "../testing/turn.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { doctor } from "./doctor.ts";
import { currentLedger, enable } from "./enable.ts";

const clock = new VirtualClock();

interface Found {
  readonly subject: string | undefined;
  readonly evidence: string;
  readonly calls: unknown;
}

/** What is reported of what has a name that begins so. */
function look(maxAmplification = 3): Found[] {
  const reports = doctor({ clock, maxAmplification }).filter(({ id, facts }) => id === "H06" && "calls" in facts);
  return reports.map(({ subject, evidence, facts }) => ({ subject: subject.name, evidence, calls: facts["calls"] }));
}

function retryOf(name: string, retries: number, dependency?: string): Retry {
  return retry({ name, dependency, retries, classify: () => "retry", baseMs: 1, clock });
}

function fail(): never {
  throw new Error("down");
}

function hasOwnRun(policy: object): boolean {
  return Object.hasOwn(policy, "run");
}

async function times(calls: number, call: () => Promise<unknown>): Promise<void> {
  const runs = Promise.allSettled(Array.from({ length: calls }, call));
  await clock.runToIdle();
  await runs;
}

it("F05.4: H06 multiplies what is nested, without a common dependency, and names it from the outside in", async () => {
  using _ = enable({ clock });
  const [gateway, client] = [retryOf("gateway", 3), retryOf("client", 3)];
  await times(10, () => client.run(() => gateway.run(fail)));
  expect(look()).toEqual([
    {
      subject: "gateway",
      evidence: 'retry "gateway" calls 16 times for each call: retry "client" 4 × retry "gateway" 4',
      calls: 16,
    },
  ]);
  expect(look(16)).toEqual([]);
});

it("finds what is nested whatever the dependency, and says of which one it is", async () => {
  using _ = enable({ clock });
  const [client, gateway, last] = [
    retryOf("client", 3, "gateway"),
    retryOf("gateway", 1, "orders"),
    retryOf("last", 2),
  ];
  await times(10, () => client.run(() => gateway.run(() => last.run(fail))));
  expect(look()).toEqual([
    {
      subject: "orders",
      evidence:
        'dependency "orders" is called 24 times for each call: retry "client" 4 × retry "gateway" 2 × retry "last" 3',
      calls: 24,
    },
  ]);
});

it.each(["before", "after"])("finds layers within compose that was called %s the watch began", async (when) => {
  const early = when === "before" ? undefined : enable({ clock });
  const [client, gateway] = [retryOf("client", 3), retryOf("gateway", 3)];
  const policy = compose(client, timeout(1_000, { clock }), gateway);
  using _ = early ?? enable({ clock });
  await times(10, () => policy.run(fail));
  expect(look().map(({ evidence }) => evidence)).toEqual([
    'retry "gateway" calls 16 times for each call: retry "client" 4 × retry "gateway" 4',
  ]);
});

it("multiplies nothing that is side by side on one dependency, whatever the traffic of either", async () => {
  using _ = enable({ clock });
  const [search, basket] = [retryOf("search", 3, "stock"), retryOf("basket", 3, "stock")];
  await Promise.all([times(10, () => search.run(fail)), times(500, () => basket.run(fail))]);
  expect(look()).toMatchObject([
    { evidence: 'dependency "stock" is called 4 times for each call: retry "search" 4', calls: 4 },
    { evidence: 'dependency "stock" is called 4 times for each call: retry "basket" 4', calls: 4 },
  ]);
  await times(10, () => search.run(async () => basket.run(() => 1).then(fail)));
  expect(look()).toMatchObject([{ calls: 4, evidence: expect.stringContaining('retry "search" 4') }]);
});

it("goes by the calls that reach the layer within, however many others the one around makes", async () => {
  using _ = enable({ clock });
  const [client, gateway, other] = [retryOf("client", 3), retryOf("gateway", 3), retryOf("other", 3)];
  await times(1_000, () => client.run(() => 1));
  await times(10, () => client.run(() => gateway.run(fail)));
  expect(look()).toMatchObject([{ subject: "gateway", calls: 16 }]);
  // ten calls in each attempt are no repetition of it
  await times(10, () => client.run(() => Promise.all(Array.from({ length: 10 }, () => other.run(() => 1)))));
  expect(look()).toMatchObject([{ subject: "gateway", calls: 16 }]);
});

it("multiplies a layer that is called within itself, and follows it for eight levels only", async () => {
  using _ = enable({ clock });
  const shared = retryOf("shared", 3);
  await times(10, () => shared.run(() => shared.run(fail)));
  expect(look()).toMatchObject([
    { evidence: expect.stringContaining('retry "shared" 4 × retry "shared" 4'), calls: 16 },
  ]);
  const walk = (left: number): Promise<number> => shared.run(() => (left === 0 ? 0 : walk(left - 1)));
  await times(10, () => walk(1_000));
  expect(currentLedger()?.nesting?.nests.map((nest) => nest.length)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(look(1.5)).toHaveLength(1);
});

it("tells of the worst way to the same layers, and of a layer by itself if those within make less of it", async () => {
  using _ = enable({ clock });
  const [client, gateway, job] = [retryOf("client", 5), retryOf("gateway", 5), retryOf("job", 0)];
  await times(10, () => gateway.run(fail));
  await times(10, () => job.run(() => gateway.run(({ attempt }) => (attempt < 4 ? fail() : 1))));
  await times(10, () => client.run(fail));
  await times(10, () =>
    client.run(({ attempt: outer }) => {
      if (outer > 2) return 1;
      return gateway.run(({ attempt }) => (attempt < 2 ? fail() : 1)).then(fail);
    }),
  );
  expect(look().map(({ evidence }) => evidence)).toEqual([
    'retry "gateway" calls 6 times for each call: retry "gateway" 6',
    'retry "client" calls 4.5 times for each call: retry "client" 4.5',
    'retry "gateway" calls 4 times for each call: retry "client" 2 × retry "gateway" 2',
  ]);
});

it("counts what a hedge and a failover add within a retry", async () => {
  using _ = enable({ clock });
  const reads = hedge({ name: "reads", hedgeAfterMs: 1, clock });
  const [client, sites] = [retryOf("client", 3), failover(["a", "b", "c"], { name: "sites", clock })];
  await times(10, () => client.run(() => reads.run(fail)));
  await times(10, () => client.run(() => sites.run(fail)));
  expect(look().map(({ evidence }) => evidence)).toEqual([
    'hedge "reads" calls 8 times for each call: retry "client" 4 × hedge "reads" 2',
    'failover "sites" calls 12 times for each call: retry "client" 4 × failover "sites" 3',
  ]);
});

it("takes nothing for nested that was left behind by an attempt which is over", async () => {
  using _ = enable({ clock });
  const [client, gateway] = [retryOf("client", 3), retryOf("gateway", 3)];
  const left: Promise<unknown>[] = [];
  const leave = async (): Promise<unknown> => {
    await turn();
    await turn();
    return gateway.run(fail);
  };
  await times(10, () =>
    client.run(() => {
      left.push(leave().catch(() => {}));
      fail();
    }),
  );
  await times(1, () => Promise.allSettled(left));
  expect(look().map(({ subject, calls }) => [subject, calls])).toEqual([
    ["client", 4],
    ["gateway", 4],
  ]);
});

it("leaves nothing on any policy once it is disabled, and sees what is made anew when enabled again", async () => {
  const [client, gateway] = [retryOf("client", 3), retryOf("gateway", 3)];
  const composed = compose(client, gateway);
  const prototype = Object.getPrototypeOf(client) as Retry;
  const watch = enable({ clock });
  const nesting = currentLedger()?.nesting;
  const [later, frozen] = [retryOf("later", 3), Object.freeze(retryOf("frozen", 3))];
  expect([client, gateway, later, frozen].map(hasOwnRun)).toEqual([true, true, true, true]);
  watch.disable();
  expect([client, gateway, later].map(hasOwnRun)).toEqual([false, false, false]);
  await times(10, () => frozen.run(() => later.run(fail)));
  const entered = vi.spyOn(prototype, "run");
  await times(10, () => composed.run(fail));
  expect(entered).not.toHaveBeenCalled(); // but by its stage, as before
  entered.mockRestore();
  expect(nesting?.nests).toEqual([]);
  using _ = enable({ clock });
  expect(currentLedger()?.nesting?.nests).toEqual([]);
  await times(10, () => composed.run(fail));
  expect(look()).toMatchObject([{ calls: 16 }]);
});

it("keeps to what totals tell, and puts nothing in the way, where the runtime has no async context", async () => {
  vi.stubGlobal("process", undefined);
  try {
    const [client, gateway] = [retryOf("client", 3, "far"), retryOf("gateway", 3, "far")];
    using _ = enable({ clock, stacks: false });
    expect(hasOwnRun(client)).toBe(false);
    await times(10, () => client.run(() => gateway.run(fail)));
    expect(look().find(({ subject }) => subject === "far")).toMatchObject({
      evidence: 'dependency "far" is called 16 times for each call, by retry "client" × 4, retry "gateway" × 4',
    });
  } finally {
    vi.unstubAllGlobals();
  }
});

it("keeps the thousand nests that were last called, and hands through what a policy is called with", async () => {
  using _ = enable({ clock });
  const first = retryOf("first", 0);
  const signal = AbortSignal.abort(new Error("no more"));
  await expect(first.run(fail, { signal })).rejects.toBe(signal.reason);
  expect(await first.run(({ attempt, idempotencyKey }) => [attempt, idempotencyKey], { idempotencyKey: "k" })).toEqual([
    1,
    "k",
  ]);
  for (let n = 0; n < 1_000; n += 1) {
    await retryOf(`made up ${n}`, 0).run(() => n);
    if (n === 500) await first.run(() => n);
  }
  const nests = currentLedger()?.nesting?.nests ?? [];
  expect([nests.length, nests[0]?.[0]?.layer.name]).toEqual([1_000, "made up 1"]);
});
