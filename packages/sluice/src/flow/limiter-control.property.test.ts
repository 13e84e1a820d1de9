import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import type { LimiterRunOptions, LimiterWhenFull } from "./limiter/options.ts";
import { Limiter } from "./limiter.ts";

const calls: Readonly<Record<string, LimiterRunOptions>> = {
  plain: {},
  heavy: { weight: 2 },
  urgent: { priority: 2 },
  known: { id: "known" },
  hasty: { timeoutMs: 10, weight: 2 },
  short: { maxRunMs: 20 },
  dropped: { maxRunMs: 20, whenOverdue: "release-slot" },
};

it("keeps I1, I2 and I5 under any plan of weights, priorities, time limits, pauses, limits and policies", () => {
  const often = fc.constantFrom(...Object.keys(calls), "end", "end", "abort", "10 ms", "settle");
  const rare = fc.constantFrom("pause", "resume", "clear", "2", "3", "4", "promote", "close");
  const plans = fc.asyncProperty(
    fc.constantFrom(0, 2, Infinity),
    fc.constantFrom<LimiterWhenFull>("reject", "wait", "drop-newest", "drop-oldest", "caller-runs"),
    fc.array(fc.oneof({ weight: 4, arbitrary: often }, { weight: 1, arbitrary: rare }), { maxLength: 40 }),
    play,
  );
  return fc.assert(plans, { numRuns: 1_000 });
});

async function play(capacity: number, whenFull: LimiterWhenFull, plan: readonly string[]): Promise<void> {
  const clock = new VirtualClock();
  const limit = new Limiter(2, { capacity, whenFull, clock });
  const work: (() => void)[] = [];
  const hold = (): Promise<void> => new Promise((resolve) => void work.push(resolve));
  let [made, settled, mayExceed] = [0, 0, false];
  let call = new AbortController();
  for (const step of [...plan, "resume", "settle"]) {
    const { signal } = call;
    const options = calls[step];
    if (options !== undefined) {
      made += 1;
      const count = (): unknown => (settled += 1);
      limit.run(hold, { ...options, signal }).then(count, count);
    } else if (step === "end") work.shift()?.();
    else if (step === "10 ms") await clock.advance(10);
    else if (step === "abort") call = (call.abort(), new AbortController());
    else if (step === "pause") limit.pause();
    else if (step === "resume") limit.resume();
    else if (step === "clear") limit.clear();
    else if (step === "promote") limit.setPriority("known", 3);
    else if (step === "close") limit.close();
    else if (step === "settle") await turn();
    else {
      limit.resize(Number(step));
      mayExceed = true; // until what runs has come down
    }
    const { taken, running, waiting, concurrency, ...stats } = limit.stats();
    mayExceed &&= taken > concurrency;
    expect(taken <= concurrency || mayExceed).toBe(true); // I1
    expect(Math.min(taken, running)).toBeGreaterThanOrEqual(0);
    if (!limit.paused) expect(waiting > 0 && taken + 2 <= concurrency).toBe(false); // I2
    const ended = stats.completed + stats.rejected + stats.dropped + stats.cleared + stats.timedOut + stats.aborted;
    expect(running + waiting + ended).toBe(made); // I5
    expect(getEventListeners(signal, "abort").length).toBeLessThanOrEqual(1);
  }
  limit.resume();
  while (limit.running + limit.waiting + work.length > 0) {
    work.shift()?.();
    await turn();
  }
  await clock.advance(0); // a look at the event loop may be under way
  expect([settled, limit.stats().taken, limit.stats().abandoned, clock.timers]).toEqual([made, 0, 0, 0]);
  expect(getEventListeners(call.signal, "abort")).toHaveLength(0);
}
