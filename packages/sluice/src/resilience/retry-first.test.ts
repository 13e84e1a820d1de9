import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { RetryBudget } from "./retry-budget.ts";
import { retry } from "./retry.ts";

const listeners = (signal: AbortSignal): number => getEventListeners(signal, "abort").length;

it("leaves no listener on the caller's signal after a run, whatever became of it", async () => {
  const { signal } = new AbortController();
  const no = new Error("no");
  const policy = retry({ retries: 0 });
  const calls = [() => 1, () => Promise.resolve(1), () => Promise.reject(no), (): never => { throw no; }]; // prettier-ignore
  for (const fn of calls) {
    await policy.run(fn, { signal }).catch(() => {});
    await turn();
    expect(listeners(signal)).toBe(0);
  }
});

it("calls what it runs as a function, and not as a method", async () => {
  const seen: unknown[] = [];
  const { signal } = new AbortController();
  await retry().run(function (this: unknown) { seen.push(this); }, { signal }); // prettier-ignore
  expect(seen).toEqual([undefined]);
});

it("answers an abort at once, and counts what goes on until it has ended", async () => {
  const call = new AbortController();
  const policy = retry();
  const ends = [Promise.withResolvers<void>(), Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  const signals: AbortSignal[] = [];
  const runs = ends.map(({ promise }) =>
    policy.run((context) => (signals.push(context.signal), promise), { signal: call.signal }),
  );
  call.abort("gone");
  expect(policy.stats()).toMatchObject({ attempts: 3, abandoned: 3, lateErrors: 0 });
  expect(signals.map(({ reason }) => reason as unknown)).toEqual(["gone", "gone", "gone"]);
  for (const run of runs) await expect(run).rejects.toBe("gone");
  ends[0].resolve();
  ends[1].reject("gone");
  ends[2].reject(new Error("of its own"));
  await turn();
  expect(policy.stats()).toMatchObject({ attempts: 3, abandoned: 0, lateErrors: 1 });
});

it("tries no more if the attempt itself aborts the run and then fails", async () => {
  const call = new AbortController();
  const policy = retry({ classify: () => "retry" });
  const run = policy.run(
    () => {
      call.abort("gone");
      throw new Error("late");
    },
    { signal: call.signal },
  );
  await expect(run).rejects.toBe("gone");
  expect(policy.stats()).toMatchObject({ attempts: 1, abandoned: 0, waiting: 0, lateErrors: 1 });
});

it("goes on after a first failure as without a signal, and still hears of the abort", async () => {
  const clock = new VirtualClock();
  const call = new AbortController();
  const policy = retry({ classify: () => "retry", random: () => 1, clock });
  const run = policy.run(({ attempt }) => Promise.reject(attempt), { signal: call.signal });
  await clock.advance(150);
  expect(policy.stats()).toMatchObject({ attempts: 2, waiting: 1 });
  call.abort("gone");
  await expect(run).rejects.toBe("gone");
  await turn();
  expect([clock.timers, listeners(call.signal)]).toEqual([0, 0]);
});

it("tells the budget of each run with a signal, and watches nothing if that throws", async () => {
  const { signal } = new AbortController();
  const budget = new RetryBudget({ ratio: 0.5, minPerSecond: 0 });
  const policy = retry({ classify: () => "retry", retries: 1, baseMs: 0, budget });
  for (let call = 0; call < 2; call += 1) await policy.run(() => 1, { signal });
  expect(budget.trySpend()).toBe(true);
  const broken = { onCall: () => { throw new Error("broken"); }, trySpend: () => true }; // prettier-ignore
  const failing = retry({ budget: broken });
  await expect(failing.run(() => 1, { signal })).rejects.toThrow("broken");
  await turn();
  expect([listeners(signal), failing.stats().attempts]).toEqual([0, 0]);
});
