import * as fc from "fast-check";
import { VirtualClock } from "sluice/testing";
import { expect, it } from "vitest";
import type { Handler } from "./attempts.ts";
import { MemoryStore } from "./memory/memory-store.ts";
import { SETTLED, snooze } from "./outcome.ts";
import type { Store } from "./store.ts";
import { Worker } from "./worker.ts";

const QUEUE = "mail";

it("loses no job and never runs too many, whatever handlers, store and time do", () => {
  const does = fc.constantFrom("works", "throws", "snoozes", "hangs", "settles", "is async", "fails at first");
  const plan = fc.record({
    jobs: fc.array(does, { minLength: 1, maxLength: 8 }),
    concurrency: fc.integer({ min: 1, max: 4 }),
    /** Which calls to the store fail, in order. */
    faults: fc.array(fc.boolean(), { maxLength: 30 }),
    pauses: fc.array(fc.constantFrom(0, 1, 700, 3_000), { minLength: 1, maxLength: 6 }),
  });
  return fc.assert(fc.asyncProperty(plan, playPlan), { numRuns: 60 });
});

async function playPlan(plan: {
  readonly jobs: readonly string[];
  readonly concurrency: number;
  readonly faults: readonly boolean[];
  readonly pauses: readonly number[];
}): Promise<void> {
  const clock = new VirtualClock({ wallStartAt: Date.UTC(2030, 0, 1) });
  const store = new MemoryStore({ clock });
  const faults = [...plan.faults];
  const flaky = new Proxy<Store>(store, {
    get(target, key: keyof Store) {
      const act = target[key]?.bind(target as never) as (...args: unknown[]) => unknown;
      if (key === "onReady") return act;
      return async (...args: unknown[]) => {
        if (faults.shift() === true) throw new Error("fault");
        return act(...args);
      };
    },
  });
  let [running, most] = [0, 0];
  const handler: Handler = async ({ id, token, payload }, { attempt, signal }) => {
    running += 1;
    most = Math.max(most, running);
    try {
      if (payload === "throws" || (payload === "fails at first" && attempt === 1)) throw new Error("no");
      if (payload === "hangs") await new Promise((resolve) => signal.addEventListener("abort", resolve));
      if (payload === "is async") await new Promise<void>((end) => void clock.setTimer(300, { onTimer: end }));
      if (payload === "snoozes" && clock.now() < 1_000) return snooze(400);
      if (payload === "settles")
        return (await store.settle([{ id, token, kind: "complete" }]))[0] ? SETTLED : undefined;
      return undefined;
    } finally {
      running -= 1;
    }
  };
  const worker = new Worker(flaky, QUEUE, handler, {
    clock,
    concurrency: plan.concurrency,
    leaseMs: 2_000,
    jobTimeoutMs: 500,
    pollMs: Infinity, // whoever sleeps must be woken
    retry: { maxMs: 1_000 },
    maxCrashes: 1_000,
    onError: () => {},
  });
  worker.start();
  for (const [index, pause] of plan.pauses.entries()) {
    const part = plan.jobs.filter((_, job) => job % plan.pauses.length === index);
    await store.add(part.map((payload) => ({ queue: QUEUE, payload, maxAttempts: 8 })));
    await clock.advance(pause);
  }
  await clock.advance(60_000);
  const expected = plan.jobs.map((what) => (what === "throws" || what === "hangs" ? "dead" : "succeeded"));
  const found = await store.list({});
  expect(found.map(({ state }) => state).toSorted()).toEqual(expected.toSorted());
  const stopped = worker.stop();
  await clock.advance(15_000);
  expect(await stopped).toEqual({ finished: 0, aborted: 0, released: [], lost: [] });
  expect(most).toBeLessThanOrEqual(plan.concurrency);
  expect(clock.timers).toBe(0);
}
