import { AsyncLocalStorage } from "node:async_hooks";
import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { currentDeadline, withDeadline } from "../clock/ambient-deadline.ts";
import { Deadline } from "../clock/deadline.ts";
import { sleep } from "../clock/sleep.ts";
import { DeadlineError, TimeoutError } from "../errors.ts";
import { namedEntries } from "../internal/names.ts";
import { unhandledIn } from "../testing/unhandled.stage.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import type { HedgeContext, HedgeOptions } from "./hedge-options.ts";
import { type Hedge, hedge } from "./hedge.ts";
import { LatencyPercentile } from "./latency-percentile.ts";
import { RetryBudget } from "./retry-budget.ts";
import { retry } from "./retry.ts";

/** A hedge whose attempts take so long each; negative ones fail, `Infinity` hangs. All heed their signal. */
function scene(tookMs: readonly number[], options: Partial<HedgeOptions> = {}) {
  const clock = new VirtualClock();
  const policy: Hedge = hedge({ hedgeAfterMs: 100, maxAttempts: tookMs.length, clock, ...options });
  const startedAt: number[] = [];
  const signals: AbortSignal[] = [];
  const attempt = async ({ attempt: number, signal }: HedgeContext): Promise<number> => {
    startedAt.push(clock.now());
    signals.push(signal);
    const ms = tookMs[number - 1] as number;
    await sleep(Math.abs(ms), { clock, signal });
    if (ms < 0) throw new Error(`attempt ${number}`);
    return number;
  };
  const outcome = async (signal?: AbortSignal): Promise<{ value?: unknown; reason?: unknown; at: number }> => {
    const settled = policy.run(attempt, { signal }).then(
      (value) => ({ value, at: clock.now() }),
      (reason: unknown) => ({ reason, at: clock.now() }),
    );
    await clock.advance(1_000);
    return await settled;
  };
  return { clock, policy, attempt, outcome, startedAt, signals };
}

it("J56: begins the next attempt when none has answered for a while, counted from the last one's beginning", async () => {
  const { outcome, startedAt, policy } = scene([Infinity, Infinity, 50]);
  expect(await outcome()).toEqual({ value: 3, at: 250 });
  expect(startedAt).toEqual([0, 100, 200]);
  expect(policy.stats()).toMatchObject({ attempts: 3, extra: 2, extraWon: 1, running: 0 });
});

it("makes one call and leaves no timer when the first answers in time", async () => {
  const { outcome, startedAt, clock, policy } = scene([99, 1]);
  const before = policy.stats();
  expect(await outcome()).toEqual({ value: 1, at: 99 });
  expect([startedAt, clock.timers]).toEqual([[0], 0]);
  expect(policy.stats()).toMatchObject({ attempts: 1, extra: 0, extraWon: 0 });
  expect(before.attempts).toBe(0); // as it was then
});

it("J56: aborts the losers with an AbortError, and the winner never, whose answer may still be read", async () => {
  const call = new AbortController();
  const { outcome, signals } = scene([Infinity, 50]);
  expect(await outcome(call.signal)).toEqual({ value: 2, at: 150 });
  expect(signals[0]?.reason).toMatchObject({ name: "AbortError" });
  call.abort();
  expect(signals[1]?.aborted).toBe(false);
  expect(getEventListeners(call.signal, "abort").length).toBe(0);
});

it("begins the next attempt at once when one fails, and counts the delay from there", async () => {
  const { outcome, startedAt } = scene([-10, Infinity, 20]);
  expect(await outcome()).toEqual({ value: 3, at: 130 });
  expect(startedAt).toEqual([0, 10, 110]);
});

it("begins one attempt, not two, when one fails in the turn in which the delay ends", async () => {
  const clock = new VirtualClock();
  const first = Promise.withResolvers<never>();
  clock.setTimer(100, { onTimer: () => first.reject(new Error("no")) });
  const policy = hedge({ hedgeAfterMs: 100, maxAttempts: 3, clock });
  const result = policy.run(({ attempt }) => (attempt === 1 ? first.promise : sleep(20, { clock })));
  await clock.advance(120);
  await result;
  expect(policy.stats().attempts).toBe(2);
});

it("begins the next at once also while others are under way", async () => {
  const { outcome, startedAt } = scene([Infinity, -10, 20]);
  expect(await outcome()).toEqual({ value: 3, at: 130 });
  expect(startedAt).toEqual([0, 100, 110]);
});

it("rejects with all errors in the order of the attempts when all fail, with the last to fail as the cause", async () => {
  const { outcome } = scene([-150, -20, -300]);
  const { reason, at } = await outcome();
  expect(reason).toBeInstanceOf(AggregateError);
  const { errors, cause } = reason as AggregateError;
  expect(errors.map(({ message }: Error) => message)).toEqual(["attempt 1", "attempt 2", "attempt 3"]);
  expect([cause, at]).toEqual([errors[2], 420]);
});

it("tries again at the fast failure of a synchronous throw, not within it", async () => {
  let depth = 0;
  const deepest: number[] = [];
  const clock = new VirtualClock();
  const result = hedge({ hedgeAfterMs: 10, maxAttempts: 100, clock }).run(() => {
    depth += 1;
    deepest.push(depth);
    try {
      throw new Error("no");
    } finally {
      depth -= 1;
    }
  });
  await expect(result).rejects.toThrow("all 100 attempts failed");
  expect([Math.max(...deepest), deepest.length, clock.timers]).toEqual([1, 100, 0]);
});

it("C101: begins no more after an abort during the delay", async () => {
  const call = new AbortController();
  const { clock, outcome, startedAt, signals, policy } = scene([Infinity, 1, 1]);
  clock.setTimer(50, { onTimer: () => call.abort("caller") });
  expect(await outcome(call.signal)).toEqual({ reason: "caller", at: 50 });
  expect([startedAt, signals[0]?.reason]).toEqual([[0], "caller"]);
  expect(policy.stats()).toMatchObject({ running: 0, losers: 0, extra: 0, lateErrors: 0 });
});

it.each(["before", "after"])(
  "C101: begins no more when the abort comes in the turn of the delay, %s it",
  async (order) => {
    const call = new AbortController();
    const { clock, policy, attempt, startedAt } = scene([Infinity, 1, 1]);
    const abort = (): unknown => clock.setTimer(100, { onTimer: () => call.abort("caller") });
    if (order === "before") abort();
    const result = policy.run(attempt, { signal: call.signal });
    if (order === "after") abort();
    const rejected = expect(result).rejects.toBe("caller");
    await clock.advance(1_000);
    await rejected;
    expect([startedAt, clock.timers]).toEqual([[0], 0]);
  },
);

it("C102: a spent budget refuses the extra attempt, and leaves those under way alone", async () => {
  let calls = 0;
  const budget = { onCall: () => void (calls += 1), trySpend: () => false };
  const { outcome, startedAt, policy } = scene([300, 1], { budget });
  expect(await outcome()).toEqual({ value: 1, at: 300 });
  expect([startedAt, calls]).toEqual([[0], 1]);
  expect(policy.stats()).toMatchObject({ attempts: 1, extra: 0, refused: 1 });
});

it("takes each extra attempt from the budget, which retries may share", async () => {
  const budget = new RetryBudget({ ratio: 3, minPerSecond: 0, clock: new VirtualClock() });
  const within = { onCall: (): void => {}, trySpend: (): boolean => budget.trySpend() };
  const { clock, policy, attempt, startedAt } = scene([-1, -1, -1, -1], { budget: within });
  const outer = retry({ classify: () => "retry", retries: 1, random: () => 0, budget, clock });
  const result = outer.run(() => policy.run(attempt)).catch((error: unknown) => error);
  await clock.advance(1_000);
  // All three went to the hedge, and none is left for a retry.
  expect(await result).toMatchObject({ errors: { length: 4 } });
  expect([startedAt.length, budget.stats()]).toEqual([4, { calls: 1, retries: 3, left: 0, refused: 1 }]);
});

it("J41: a thousand failing requests with a hedge in each of up to 3 retries are 1,100 calls within one budget", async () => {
  const clock = new VirtualClock();
  const budget = new RetryBudget({ ratio: 0.1, minPerSecond: 0, windowMs: 1e9, clock });
  const within = { onCall: (): void => {}, trySpend: (): boolean => budget.trySpend() };
  const inner = hedge({ hedgeAfterMs: 50, budget: within, clock });
  const outer = retry({ retries: 3, classify: () => "retry", budget, clock });
  let calls = 0;
  const fail = (): Promise<never> => {
    calls += 1;
    return Promise.reject(new Error("down"));
  };
  const requests = Array.from({ length: 1_000 }, () => outer.run(() => inner.run(fail)));
  const all = Promise.allSettled(requests);
  await clock.advance(60_000);
  await all;
  expect(calls).toBe(1_100);
});

it("C104: tracks the losers until they end, and hands over what one comes up with, and not what won", async () => {
  const clock = new VirtualClock();
  const undelivered: unknown[] = [];
  const policy = hedge({ hedgeAfterMs: 50, maxAttempts: 3, onUndelivered: (value) => undelivered.push(value), clock });
  const signals: AbortSignal[] = [];
  const result = policy.run(async ({ attempt, signal }) => {
    signals.push(signal);
    await sleep([200, 100, 120][attempt - 1] as number, { clock }); // ignores its signal
    if (attempt === 3) throw new Error("late");
    return `result ${attempt}`;
  });
  await clock.advance(150);
  expect(await result).toBe("result 2");
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, false, true]);
  expect(policy.stats()).toMatchObject({ running: 0, losers: 2, lateErrors: 0 });
  await clock.advance(100);
  expect(undelivered).toEqual(["result 1"]);
  expect(policy.stats()).toMatchObject({ losers: 0, lateErrors: 1 });
});

it("leaves what onUndelivered throws to the process, and counts right", async () => {
  const clock = new VirtualClock();
  const policy = hedge({ hedgeAfterMs: 50, onUndelivered: broken, clock });
  const unhandled = await unhandledIn(async () => {
    const result = policy.run(({ attempt }) => sleep(attempt === 1 ? 200 : 10, { clock }));
    await clock.advance(300);
    await result;
  });
  expect(unhandled).toEqual([new Error("broken")]);
  expect(policy.stats().losers).toBe(0);
});

it("C107: three hedged attempts within two retries are nine calls, and none after a success", async () => {
  for (const succeedsAt of [Infinity, 4]) {
    const clock = new VirtualClock();
    let calls = 0;
    const signals: AbortSignal[] = [];
    const inner = hedge({ hedgeAfterMs: 10, maxAttempts: 3, clock });
    const outer = retry({ retries: 2, classify: () => "retry", clock });
    const result = outer
      .run(({ signal }) =>
        inner.run(
          async ({ signal: own }) => {
            calls += 1;
            signals.push(own);
            const number = calls;
            await sleep(number === succeedsAt ? 15 : 25, { clock, signal: own });
            if (number === succeedsAt) return "ok";
            throw new Error("no");
          },
          { signal },
        ),
      )
      .catch(() => "failed");
    await clock.advance(100_000);
    expect([await result, calls]).toEqual(succeedsAt === 4 ? ["ok", 5] : ["failed", 9]);
    if (succeedsAt === 4) expect(signals.map(({ aborted }) => aborted).slice(3)).toEqual([false, true]);
    expect([inner.stats().losers, clock.timers]).toEqual([0, 0]);
  }
});

it("lets a retry around it judge by the last error", async () => {
  const clock = new VirtualClock();
  let calls = 0;
  const fail = (): never => {
    calls += 1;
    throw Object.assign(new Error("unavailable"), { status: 503 });
  };
  const inner = hedge({ hedgeAfterMs: 10, clock });
  const result = retry({ retries: 1, clock })
    .run(() => inner.run(fail))
    .catch(() => calls);
  await clock.advance(1_000);
  expect(await result).toBe(4);
});

it("asks a function for each delay, with the number of the attempt that has begun", async () => {
  const asked: number[] = [];
  const hedgeAfterMs = (attempt: number): number => {
    asked.push(attempt);
    return attempt === 1 ? 30 : Infinity;
  };
  const { outcome, startedAt } = scene([Infinity, 200, 1], { hedgeAfterMs });
  expect(await outcome()).toEqual({ value: 2, at: 230 });
  expect([startedAt, asked]).toEqual([
    [0, 30],
    [1, 2],
  ]);
});

it("rejects with what that function throws, or for what is no delay, and ends what it has begun", async () => {
  for (const [hedgeAfterMs, expected] of [
    [broken, "broken"],
    [(): number => Number.NaN, "hedgeAfterMs"],
    [(): number => -1, "hedgeAfterMs"],
  ] as const) {
    const { outcome, signals, clock, policy } = scene([50, 1], { hedgeAfterMs });
    expect((await outcome()).reason).toMatchObject({ message: expect.stringContaining(expected) });
    expect([signals.length, signals[0]?.aborted, clock.timers]).toEqual([1, true, 0]);
    expect(policy.stats()).toMatchObject({ running: 0, losers: 0 });
  }
});

it("begins all at once with a delay of 0, each in a turn of its own", async () => {
  const { outcome, startedAt } = scene([50, 40, 30], { hedgeAfterMs: 0 });
  expect(await outcome()).toEqual({ value: 3, at: 30 });
  expect(startedAt).toEqual([0, 0, 0]);
});

it("hedges the slowest by a percentile of what it has seen, and learns from those it overtook", async () => {
  const clock = new VirtualClock();
  const delay = new LatencyPercentile(90, { minSamples: 10 });
  const policy = hedge({ hedgeAfterMs: delay, clock });
  const run = async (firstMs: number): Promise<number> => {
    const result = policy.run(({ attempt, signal }) => sleep(attempt === 1 ? firstMs : 5, { clock, signal }));
    const startedAt = clock.now();
    const tookMs = result.then(() => clock.now() - startedAt);
    await clock.advance(500);
    return await tookMs;
  };
  expect(delay.ms).toBe(Infinity);
  for (let i = 0; i < 9; i += 1) await run(20);
  await run(400);
  expect(policy.stats().extra).toBe(0);
  expect(delay.ms).toBeCloseTo(20, -1);
  const tookMs = await run(400);
  expect([tookMs < 30, policy.stats().extraWon]).toEqual([true, 1]);
  // One in ten is slow: they are 10 % as before, though each was cut short.
  for (let i = 0; i < 200; i += 1) await run(i % 10 === 0 ? 400 : 20);
  expect(delay.ms).toBeGreaterThan(19);
  expect(policy.stats().extra).toBeLessThan(50);
});

it("lets no result win that fn refuses with a throw", async () => {
  const clock = new VirtualClock();
  const result = hedge({ hedgeAfterMs: 100, maxAttempts: 3, clock }).run(async ({ attempt }) => {
    await sleep(10, { clock });
    const found = attempt === 2 ? "fresh" : "stale";
    if (found === "stale") throw new Error(found);
    return found;
  });
  await clock.advance(20);
  expect(await result).toBe("fresh");
});

it("records no latency of a run that failed or was left", async () => {
  const recorded: number[] = [];
  const hedgeAfterMs = { ms: 100, record: (ms: number) => void recorded.push(ms) };
  await scene([-10, -10], { hedgeAfterMs }).outcome();
  await scene([-10, 10], { hedgeAfterMs }).outcome();
  await scene([-10, 200, 500], { hedgeAfterMs }).outcome(); // the third is under way when the second wins
  const call = new AbortController();
  const left = scene([500, 500], { hedgeAfterMs });
  left.clock.setTimer(50, { onTimer: () => call.abort() });
  await left.outcome(call.signal);
  expect(recorded).toEqual([]);
  await scene([30, 1], { hedgeAfterMs }).outcome();
  await scene([Infinity, 50], { hedgeAfterMs }).outcome();
  expect(recorded).toEqual([30, 150]);
});

it("has no more attempts under way than it may", async () => {
  const { outcome, startedAt } = scene([-250, 10, 10], { concurrency: 1 });
  expect(await outcome()).toEqual({ value: 2, at: 260 });
  expect(startedAt).toEqual([0, 250]);
});

it("starts nothing after an error that another attempt would repeat, but lets win what is under way", async () => {
  const bad = Object.assign(new Error("bad request"), { status: 400 });
  for (const [firstMs, expected] of [
    [300, { value: "first", at: 300 }],
    [-300, { reason: bad, at: 300 }],
  ] as const) {
    const clock = new VirtualClock();
    const policy = hedge({ hedgeAfterMs: 100, maxAttempts: 5, clock });
    const result = policy
      .run(async ({ attempt, signal }) => {
        await sleep(attempt === 1 ? Math.abs(firstMs) : 10, { clock, signal });
        if (attempt > 1) throw bad;
        if (firstMs < 0) throw new Error("slow and bad");
        return "first";
      })
      .then(
        (value) => ({ value, at: clock.now() }),
        (reason: unknown) => ({ reason, at: clock.now() }),
      );
    await clock.advance(100 + 10);
    expect(clock.timers).toBe(1); // that of the first attempt
    await clock.advance(1_000);
    expect(await result).toEqual(expected);
    expect(policy.stats().attempts).toBe(2);
  }
});

it("rejects with what classify throws, and ends the others", async () => {
  const { outcome, signals } = scene([500, -10, 1], { classify: broken });
  expect(await outcome()).toMatchObject({ reason: { message: "broken" }, at: 110 });
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
});

it("begins nothing when classify, the budget or fn has aborted the run", async () => {
  for (const index of [0, 1, 2]) {
    const call = new AbortController();
    const { outcome, startedAt, clock } = scene([-10, 1], aborting(call)[index]);
    expect(await outcome(call.signal)).toMatchObject({ reason: "gone" });
    expect([startedAt, clock.timers]).toEqual([[0], 0]);
  }
  const call = new AbortController();
  const clock = new VirtualClock();
  const result = hedge({ hedgeAfterMs: 10, clock }).run(() => (call.abort("gone"), "value"), call);
  await expect(result).rejects.toBe("gone");
  expect(clock.timers).toBe(0);
  const left = new AbortController();
  let asked = 0;
  const budget = { onCall: (): void => {}, trySpend: (): boolean => (asked += 1) > 0 };
  await scene([-10, 1], { ...aborting(left)[0], budget }).outcome(left.signal);
  expect(asked).toBe(0);
});

it("runs the extra attempts in the async context of the call, also on a clock that has none", async () => {
  const request = new AsyncLocalStorage<string>();
  const clock = new VirtualClock();
  const seen: unknown[] = [];
  const result = request.run("mine", () =>
    hedge({ hedgeAfterMs: 10, clock }).run(async ({ attempt, signal }) => {
      seen.push(request.getStore());
      await sleep(attempt === 1 ? Infinity : 1, { clock, signal });
    }),
  );
  await request.run("other", () => clock.advance(100));
  await result;
  expect(seen).toEqual(["mine", "mine"]);
});

it("ends with its deadline, and begins nothing that has not the time it needs", async () => {
  const clock = new VirtualClock();
  using within = Deadline.after(150, { clock });
  const hanging = scene([Infinity, Infinity], { within, clock });
  const result = hanging.policy.run(() => new Promise(() => {})).catch((error: unknown) => error);
  await clock.advance(150);
  expect(await result).toBe(within.signal.reason);
  expect(hanging.policy.stats()).toMatchObject({ attempts: 2, losers: 2 });
  await expect(hanging.policy.run(() => 1)).rejects.toBe(within.signal.reason);

  using short = Deadline.after(150, { clock });
  expect(await hedge({ hedgeAfterMs: 100, within: short, clock }).run(() => 1)).toBe(1);
  expect(getEventListeners(short.signal, "abort").length).toBe(0);
  const policy = hedge({ hedgeAfterMs: 100, neededMs: 80, within: short, clock });
  const slow = policy.run(({ attempt }) => sleep(120, { clock }).then(() => attempt));
  await clock.advance(130);
  expect(await slow).toBe(1);
  expect(policy.stats()).toMatchObject({ attempts: 1, refused: 0 });
  const late = await policy.run(() => 1).catch((error: unknown) => error);
  expect(late).toBeInstanceOf(DeadlineError);
  expect(late).toMatchObject({ leftMs: 20, neededMs: 80 });
  expect(policy.stats().running).toBe(0);
});

it("reads the deadline of whoever calls, if it is told to", async () => {
  const clock = new VirtualClock();
  const policy = hedge({ hedgeAfterMs: 40, within: currentDeadline, clock });
  const result = withDeadline(100, () => policy.run(() => new Promise(() => {})), { clock });
  const ended = expect(result).rejects.toThrow(TimeoutError);
  await clock.advance(100);
  await ended;
  expect([policy.stats().attempts, clock.timers]).toEqual([2, 0]);
  expect(await policy.run(() => "without one")).toBe("without one");
});

it("rejects, leaving nothing, when the clock, a signal or the budget throws", async () => {
  const clock = new VirtualClock();
  const { signal } = new AbortController();
  const policy = hedge({ hedgeAfterMs: 10, budget: { onCall: broken, trySpend: broken }, clock });
  await expect(policy.run(() => 1, { signal })).rejects.toThrow("broken");
  expect(getEventListeners(signal, "abort").length).toBe(0);
  const other = hedge({ hedgeAfterMs: 10, clock });
  clock.setTimer = broken;
  const { promise, resolve } = Promise.withResolvers<void>();
  await expect(other.run(() => promise, { signal })).rejects.toThrow("broken");
  resolve();
  await turn();
  signal.addEventListener = broken;
  await expect(other.run(() => 1, { signal })).rejects.toThrow("broken");
  expect([policy, other].map((each) => each.stats().running + each.stats().losers)).toEqual([0, 0]);
  expect(getEventListeners(signal, "abort").length).toBe(0);
});

it("is found by its name", () => {
  const policy = hedge({ hedgeAfterMs: 1, name: "reads" });
  const found = namedEntries().find(({ target }) => target.deref() === policy);
  expect([found, policy.name]).toMatchObject([{ kind: "hedge", name: "reads" }, "reads"]);
});

it("refuses bad options", () => {
  for (const bad of [{ hedgeAfterMs: -1 }, { hedgeAfterMs: Number.NaN }, { hedgeAfterMs: 1, maxAttempts: 0 }])
    expect(() => hedge(bad)).toThrow(RangeError);
  for (const bad of [{ concurrency: 0 }, { neededMs: -1 }, { neededMs: Infinity }, { maxAttempts: Infinity }])
    expect(() => hedge({ hedgeAfterMs: 1, ...bad })).toThrow(RangeError);
  expect(() => hedge({} as HedgeOptions)).toThrow(TypeError);
  for (const name of ["classify", "onUndelivered"])
    expect(() => hedge({ hedgeAfterMs: 1, [name]: null })).toThrow(`${name} must be a function, got null`);
  expect(() => hedge({ hedgeAfterMs: 1, within: 5 as unknown as Deadline })).toThrow(TypeError);
  for (const hedgeAfterMs of [null, { ms: 1 }])
    expect(() => hedge({ hedgeAfterMs: hedgeAfterMs as never })).toThrow("hedgeAfterMs.record must be a function");
});

/** Options whose functions abort the call. */
function aborting(call: AbortController): Partial<HedgeOptions>[] {
  return [
    { classify: () => (call.abort("gone"), "next") },
    { budget: { onCall() {}, trySpend: () => (call.abort("gone"), true) } },
    { hedgeAfterMs: (attempt) => (call.abort("gone"), attempt) },
  ];
}

function broken(): never {
  throw new Error("broken");
}
