import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { sleep } from "../clock/sleep.ts";
import type { Policy } from "../policy.ts";
import { type AbortSubject, abortCases } from "../testing/abort-suite.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { failover } from "./failover.ts";
import type { FailoverVerdict } from "./hedge-options.ts";
import { hedge } from "./hedge.ts";

const lacks = { timeoutMs: "it bounds admission, and nobody waits to be admitted" };

/** Whose attempts end only when the scene is satisfied. */
function subject(name: string, open: (clock: VirtualClock) => Policy): AbortSubject {
  return {
    name,
    lacks,
    open(clock) {
      const policy = open(clock);
      const calls: (() => void)[] = [];
      let isSatisfied = false;
      return {
        call(options) {
          const { promise, resolve } = Promise.withResolvers<void>();
          const result = policy.run(() => {
            if (isSatisfied) resolve();
            else if (!calls.includes(resolve)) calls.push(resolve);
            return promise;
          }, options);
          result.catch(() => calls.splice(calls.indexOf(resolve), 1));
          return result;
        },
        satisfy() {
          isSatisfied = calls.length === 0;
          calls.shift()?.();
        },
        state: () => ({ timers: clock.timers }),
      };
    },
  };
}

const subjects = [
  subject("Hedge.run", (clock) => hedge({ hedgeAfterMs: 60_000, clock })),
  subject("Failover.run", (clock) => failover(["only"], { clock })),
];
for (const { title, run } of subjects.flatMap((each) => abortCases(each))) it(title, run);

/** What comes of an attempt, after how long; at once with the reason of its signal, if it heeds that. */
interface Plan {
  readonly tookMs: number;
  readonly ends: "ok" | "fails" | "stops";
  readonly heeds: boolean;
}

interface Seen {
  readonly beganAt: number;
  readonly signal: AbortSignal;
  endedAt: number;
}

const plan = fc.record({
  tookMs: fc.integer({ min: 0, max: 9 }),
  ends: fc.constantFrom("ok", "fails", "stops"),
  heeds: fc.boolean(),
});

it("keeps I1 to I3 and answers with the first success, whatever the attempts do and whenever the caller leaves", () => {
  const options = fc.record({
    hedgeAfterMs: fc.constantFrom(0, 1, 2, 3, 5, Infinity),
    concurrency: fc.constantFrom(1, 2, Infinity),
    abortAt: fc.constantFrom(0.5, 2, 4, 7, Infinity),
  });
  const plans = fc.asyncProperty(fc.array(plan, { minLength: 1, maxLength: 5 }), options, play);
  return fc.assert(plans, { numRuns: 1_000 });
});

function classify(error: unknown): FailoverVerdict {
  return error === "stops" ? "stop" : "next";
}

async function play(
  plans: readonly Plan[],
  { hedgeAfterMs, concurrency, abortAt }: { hedgeAfterMs: number; concurrency: number; abortAt: number },
): Promise<void> {
  const clock = new VirtualClock();
  const call = new AbortController();
  const { signal } = call;
  const policy = failover(plans, { hedgeAfterMs, concurrency, classify, clock });
  const seen: Seen[] = [];
  const answers: { readonly at: number; readonly value?: unknown; readonly reason?: unknown }[] = [];
  const begin = async ({ target, attempt, signal: own }: { target: Plan; attempt: number; signal: AbortSignal }) => {
    expect([answers, target]).toEqual([[], plans[attempt - 1]]); // I1: each in turn, none after the answer
    const one: Seen = { beganAt: clock.now(), signal: own, endedAt: Infinity };
    seen.push(one);
    expect(seen.filter(({ endedAt }) => endedAt === Infinity).length).toBeLessThanOrEqual(concurrency);
    try {
      await sleep(target.tookMs, { clock, signal: target.heeds ? own : undefined });
      if (target.ends !== "ok") throw target.ends;
      return attempt;
    } finally {
      one.endedAt = clock.now();
    }
  };
  policy.run(begin, { signal }).then(
    (value) => answers.push({ at: clock.now(), value }),
    (reason: unknown) => answers.push({ at: clock.now(), reason }),
  );
  if (abortAt < Infinity) clock.setTimer(abortAt, { onTimer: () => call.abort("left") });
  for (let ms = 0; ms <= 60 && answers.length === 0; ms += 0.5) {
    await clock.advance(ms === 0 ? 0 : 0.5);
    await turn();
    const running = seen.filter(({ endedAt }) => endedAt === Infinity);
    if (answers.length === 0) {
      expect(running.length).toBeGreaterThan(0); // I1
      expect(running.some((each) => each.signal.aborted)).toBe(false); // I2
      expect(policy.stats()).toMatchObject({ running: 1, attempts: seen.length, losers: 0 });
      expect(getEventListeners(signal, "abort").length).toBe(1);
    } else {
      expect(running.every((each) => each.signal.aborted)).toBe(true); // I2
      expect(policy.stats()).toMatchObject({ running: 0, losers: running.length });
      expect(getEventListeners(signal, "abort").length).toBe(0);
    }
  }
  const [answer] = answers;
  const wins = seen.flatMap(({ beganAt, signal: own }, index) => {
    const { ends, tookMs } = plans[index] as Plan;
    return ends === "ok" && !own.aborted ? [{ at: beganAt + tookMs, value: index + 1 }] : [];
  });
  expect(wins.length).toBeLessThanOrEqual(1); // of all that could have won, only the winner's signal has not aborted
  if (answer?.value !== undefined) expect(answer).toEqual(wins[0]);
  else if (answer?.reason === "left") expect(answer.at).toBe(abortAt);
  else {
    expect(seen.every(({ endedAt }) => endedAt <= (answer?.at ?? 0))).toBe(true);
    const ends = plans.slice(0, seen.length).map((each) => each.ends);
    if (ends.includes("stops")) expect(answer?.reason).toBe("stops");
    else expect(answer?.reason).toMatchObject({ errors: plans.map((each) => each.ends) });
  }
  await clock.advance(100);
  await turn();
  expect([clock.timers, policy.stats().losers, policy.stats().attempts]).toEqual([0, 0, seen.length]);
}
