import { expect, it } from "vitest";
import { named } from "../observe/named.ts";
import { abortCases, type AbortSubject } from "../testing/abort-suite.ts";
import { seededRandom } from "../testing/seeded-random.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { type Chaos, chaosBehavior, chaosFault, chaosLatency, chaosOutcome } from "./chaos.ts";
import { compose } from "./compose.ts";
import { retry } from "./retry.ts";

class Down extends Error {}

const always = { rate: 1, enabled: true } as const;

async function failuresOf(chaos: Chaos, calls: number): Promise<number> {
  const outcomes = await Promise.allSettled(Array.from({ length: calls }, () => chaos.run(() => 1)));
  return outcomes.filter(({ status }) => status === "rejected").length;
}

it("does nothing unless it is enabled", async () => {
  const chaos = chaosFault(() => new Down(), { rate: 1 });
  expect(await failuresOf(chaos, 10)).toBe(0);
  chaos.enabled = true;
  expect(await failuresOf(chaos, 10)).toBe(10);
  chaos.enabled = false;
  expect(await failuresOf(chaos, 10)).toBe(0);
  expect(chaos.stats()).toEqual({ enabled: false, rate: 1, calls: 30, injected: 10 });
});

it("lets a share of the calls fail, the same ones for the same seed, and another share once it is told to", async () => {
  const [one, other] = [7, 7].map((seed) =>
    chaosFault(() => new Down(), { rate: 0.2, enabled: true, random: seededRandom(seed) }),
  ) as [Chaos, Chaos];
  const failed = await failuresOf(one, 1_000);
  expect(failed).toBeGreaterThan(150);
  expect(failed).toBeLessThan(250);
  expect(await failuresOf(other, 1_000)).toBe(failed);
  one.rate = 0.8;
  expect(await failuresOf(one, 1_000)).toBeGreaterThan(750);
  one.rate = 0;
  expect(await failuresOf(one, 1_000)).toBe(0);
});

it("rejects with the error it is given, and doesn't call fn", async () => {
  const error = new Down();
  let calls = 0;
  await expect(chaosFault(() => error, always).run(() => (calls += 1))).rejects.toBe(error);
  expect(calls).toBe(0);
});

it("answers in place of fn, by a value, a promise or a throw", async () => {
  let calls = 0;
  const fn = (): number => (calls += 1);
  expect(await chaosOutcome(() => 500, always).run(fn)).toBe(500);
  expect(await chaosOutcome(() => Promise.resolve(500), always).run(fn)).toBe(500);
  await expect(
    chaosOutcome(() => {
      throw new Down();
    }, always).run(fn),
  ).rejects.toThrow(Down);
  expect(calls).toBe(0);
});

it("calls fn only after the latency, which may be another for each call", async () => {
  const clock = new VirtualClock();
  const delays = [30, 5];
  const chaos = chaosLatency(() => delays.shift() ?? 0, { ...always, clock });
  const startedAt: number[] = [];
  const calls = [1, 2].map(() => chaos.run(() => startedAt.push(clock.now())));
  await clock.advance(29);
  expect(startedAt).toEqual([5]);
  await clock.advance(1);
  expect(startedAt).toEqual([5, 30]);
  await Promise.all(calls);
  expect(clock.timers).toBe(0);
});

it("ends the latency with the signal, and doesn't call fn", async () => {
  const clock = new VirtualClock();
  const call = new AbortController();
  let calls = 0;
  const run = chaosLatency(1_000, { ...always, clock }).run(() => (calls += 1), { signal: call.signal });
  call.abort(new Down());
  await expect(run).rejects.toBe(call.signal.reason);
  await clock.advance(2_000);
  expect([calls, clock.timers]).toEqual([0, 0]);
});

it("acts before some calls, which fail with what the act throws", async () => {
  const order: string[] = [];
  await chaosBehavior(() => order.push("act"), always).run(() => order.push("fn"));
  expect(order).toEqual(["act", "fn"]);
  await expect(chaosBehavior(() => Promise.reject(new Down()), always).run(() => order.push("fn"))).rejects.toThrow(
    Down,
  );
  expect(order).toHaveLength(2);
});

it("doesn't call fn if the signal aborts while it acts", async () => {
  const call = new AbortController();
  let calls = 0;
  const run = chaosBehavior(() => call.abort(new Down()), always).run(() => (calls += 1), { signal: call.signal });
  await expect(run).rejects.toBe(call.signal.reason);
  expect(calls).toBe(0);
});

it("is seen by what is around it: a retry hides what happens to half of the attempts", async () => {
  const chaos = chaosFault(() => new Down(), { rate: 0.5, random: seededRandom(1) });
  const clock = new VirtualClock();
  const policy = compose(retry({ retries: 20, classify: () => "retry", clock }), chaos);
  expect(await policy.run(() => 1)).toBe(1);
  expect(chaos.stats()).toMatchObject({ calls: 1, injected: 0 });
  chaos.enabled = true;
  const calls = Promise.all(Array.from({ length: 100 }, () => policy.run(({ attempt }) => attempt)));
  await clock.runToIdle();
  expect(Math.max(...(await calls))).toBeGreaterThan(2);
  expect(chaos.stats().injected).toBeGreaterThan(50);
});

it("rejects with what fn throws at once, and with what its random throws", async () => {
  const fail = (): never => {
    throw new Down();
  };
  await expect(chaosFault(() => 1, { rate: 0 }).run(fail)).rejects.toThrow(Down);
  await expect(chaosFault(() => 1, { ...always, random: fail }).run(() => 1)).rejects.toThrow(Down);
});

it("tells its counts by name", () => {
  const chaos = chaosFault(() => new Down(), { rate: 0.25, name: "down for some" });
  expect(named().find(({ name }) => name === "down for some")).toMatchObject({ kind: "chaos", stats: chaos.stats() });
});

it.each([
  [{ rate: -0.1 }, "rate must be finite and >= 0, got -0.1"],
  [{ rate: 1.5 }, "rate must be <= 1, got 1.5"],
  [{ rate: "half" as never }, "rate must be a number, got string"],
])("refuses %j", (options, why) => {
  expect(() => chaosFault(() => 1, options)).toThrow(why);
  const chaos = chaosFault(() => 1, { rate: 0.5 });
  expect(() => (chaos.rate = options.rate)).toThrow(why);
  expect(chaos.rate).toBe(0.5);
});

it("refuses a random that is no function", () => {
  expect(() => chaosFault(() => 1, { rate: 1, random: 1 as never })).toThrow("random must be a function, got number");
});

it("refuses a latency below 0", () => {
  expect(() => chaosLatency(-1, { rate: 1 })).toThrow("delayMs must be >= 0, got -1");
});

const latency: AbortSubject = {
  name: "chaosLatency.run",
  lacks: { timeoutMs: "it admits every call" },
  open(clock) {
    const chaos = chaosLatency(1_000, { ...always, clock });
    return { call: (options) => chaos.run(() => 1, options), satisfy: () => clock.advance(1_000), state: () => ({}) };
  },
};

for (const { title, run } of abortCases(latency)) it(title, run);
