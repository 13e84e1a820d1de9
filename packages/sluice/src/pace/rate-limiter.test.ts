import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { RateLimitedError } from "../errors.ts";
import { type AbortSubject, abortCases } from "../testing/abort-suite.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { RateLimiter, type RateLimiterOptions } from "./rate-limiter.ts";

/** As `clock`, but a wait of `LONG_MS` can be over at once, so that a token is there before any timeout. */
function hasteningClock(clock: VirtualClock): Clock & { hasten(): void } {
  let skewMs = 0;
  let long: (() => void)[] = [];
  return {
    now: () => clock.now() + skewMs,
    wallNow: () => clock.wallNow(),
    track: (work) => work,
    setTimer(delayMs, task) {
      const timer = clock.setTimer(delayMs, task);
      const fire = (): void => {
        timer.cancel();
        task.onTimer();
      };
      if (delayMs >= LONG_MS / 2) long.push(fire);
      return { cancel: () => (timer.cancel(), (long = long.filter((each) => each !== fire))) };
    },
    hasten() {
      skewMs += LONG_MS;
      for (const fire of long.splice(0)) fire();
    },
  };
}

const LONG_MS = 100_000;

const subjects: readonly AbortSubject[] = (["take", "run"] as const).map((verb) => ({
  name: `RateLimiter.${verb}`,
  open(virtual) {
    const clock = hasteningClock(virtual);
    const limiter = new RateLimiter({ count: 1, perMs: LONG_MS, clock });
    limiter.tryTake("key");
    return {
      call: (options) =>
        verb === "take" ? limiter.take("key", options) : limiter.run(() => {}, { ...options, key: "key" }),
      satisfy: () => clock.hasten(),
      state: () => ({ waiting: limiter.stats().waiting }),
    };
  },
}));
for (const subject of subjects) for (const { title, run } of abortCases(subject)) it(title, run);

/** When each of `calls` that all come at 0 starts. */
async function backlog(calls: number, options: RateLimiterOptions): Promise<number[]> {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ ...options, clock });
  const starts: number[] = [];
  const runs = Array.from({ length: calls }, () => limiter.run(() => void starts.push(clock.now())));
  await clock.advance((calls / options.count + 1) * options.perMs);
  await Promise.all(runs);
  expect(clock.timers).toBe(0);
  return starts;
}

/** The most starts in any span of less than `perMs`. */
function most(starts: readonly number[], perMs: number): number {
  let [found, first] = [0, 0];
  for (const [last, at] of starts.entries()) {
    while (at - (starts[first] ?? at) >= perMs) first += 1;
    found = Math.max(found, last - first + 1);
  }
  return found;
}

it.each([
  { count: 18, perMs: 1_000 },
  { count: 50, perMs: 20 },
  { count: 7, perMs: 1_000 / 3 },
])(
  "C116: lets no more than $count per $perMs ms start out of a backlog of 10,000, and wastes no time",
  async (limit) => {
    const starts = await backlog(10_000, limit);
    expect(starts.length).toBe(10_000);
    expect(most(starts, limit.perMs)).toBe(limit.count);
    const idealMs = (9_999 / limit.count) * limit.perMs;
    expect(Math.abs((starts.at(-1) ?? 0) / idealMs - 1)).toBeLessThan(0.01);
  },
);

it("lets a full bucket out at once with burst, and up to count + burst - 1 into one span", async () => {
  const starts = await backlog(1_000, { count: 18, perMs: 1_000, burst: 5 });
  expect(starts.filter((at) => at === 0).length).toBe(5);
  expect(most(starts, 1_000)).toBe(22);
});

it("C126: keeps its distance by its own clock though timers fire early, with three wake-ups per start at most", async () => {
  const inner = new VirtualClock();
  let wakeUps = 0;
  const early: Clock = {
    now: () => inner.now(),
    wallNow: () => inner.wallNow(),
    track: (work) => work,
    setTimer(delayMs, task) {
      const onTimer = (): void => {
        wakeUps += 1;
        task.onTimer();
      };
      return inner.setTimer(Math.max(0, delayMs - 0.7), { onTimer });
    },
  };
  const limiter = new RateLimiter({ count: 1, perMs: 50, clock: early });
  const starts: number[] = [];
  const runs = Array.from({ length: 20 }, () => limiter.run(() => void starts.push(inner.now())));
  await inner.advance(2_000);
  await Promise.all(runs);
  for (const [index, at] of starts.slice(1).entries()) expect(at).toBeGreaterThanOrEqual((starts[index] ?? 0) + 50);
  expect(wakeUps).toBeLessThanOrEqual(3 * 20);
});

it("C127: gives no double allowance to a limiter that was idle since it was made", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 3, perMs: 500, burst: 3, clock });
  await clock.advance(5_000);
  const taken: boolean[] = [];
  for (let call = 0; call < 4; call += 1) {
    taken.push(limiter.tryTake());
    await clock.advance(15);
  }
  expect(taken).toEqual([true, true, true, false]);
});

it("N04: lets one user be flooded without any other user's noticing", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 5, perMs: 60_000, burst: 5, clock });
  const flooded = Array.from({ length: 100 }, () => limiter.tryTake("flooded"));
  expect(flooded.filter(Boolean).length).toBe(5);
  expect(Array.from({ length: 5 }, () => limiter.tryTake("other"))).toEqual([true, true, true, true, true]);
  expect(limiter.tryTake()).toBe(true); // the bucket of calls without a key is one of its own
  await clock.advance(12_000);
  expect([limiter.tryTake("flooded"), limiter.tryTake("flooded")]).toEqual([true, false]);
  expect(limiter.stats()).toMatchObject({ keys: 2, granted: 12, rejected: 96, waiting: 0 });
});

it("serves each key in the order of arrival, also those who want more than those behind them", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 10, perMs: 1_000, burst: 4, clock });
  const log: string[] = [];
  limiter.tryTake("a", 4);
  for (const [name, cost] of [
    ["big", 4],
    ["small", 1],
    ["last", 2],
  ] as const)
    // prettier-ignore
    void limiter.take("a", { cost }).then(() => log.push(`${name} at ${clock.now()}`));
  void limiter.take("b").then(() => log.push(`b at ${clock.now()}`));
  await clock.advance(0);
  expect([limiter.tryTake("a"), limiter.stats().waiting]).toEqual([false, 3]);
  await clock.advance(1_000);
  expect(log).toEqual(["b at 0", "big at 400", "small at 500", "last at 700"]);
  expect(clock.timers).toBe(0);
});

it("lets no newcomer overtake those who wait, though tokens for it are there", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 10, perMs: 1_000, burst: 4, clock });
  limiter.tryTake("a", 4);
  const big = limiter.take("a", { cost: 4 });
  await clock.advance(200);
  expect(limiter.tryTake("a", 1)).toBe(false);
  await clock.advance(200);
  await big;
});

it("serves those behind a waiter that leaves as soon as they can be", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 10, perMs: 1_000, burst: 4, clock });
  const call = new AbortController();
  const log: string[] = [];
  limiter.tryTake("a", 4);
  const big = limiter.take("a", { cost: 4, signal: call.signal });
  void limiter.take("a", { cost: 2 }).then(() => log.push(`small at ${clock.now()}`));
  await clock.advance(250);
  call.abort(new Error("changed my mind"));
  await expect(big).rejects.toBe(call.signal.reason);
  await clock.advance(0);
  expect(log).toEqual(["small at 250"]);
  expect(clock.timers).toBe(0);
});

it("counts each take that got nothing by the reason, while others still wait and after", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 1, perMs: 1_000, maxWaiting: 3, clock });
  const call = new AbortController();
  limiter.tryTake("a");
  const takes = [{ timeoutMs: 0 }, { timeoutMs: 10 }, { signal: call.signal }, {}, {}].map((options) =>
    limiter.take("a", options),
  );
  const ended = Promise.allSettled(takes);
  await clock.advance(10);
  call.abort();
  const counts = { granted: 1, rejected: 1, timedOut: 2, aborted: 1 };
  expect(limiter.stats()).toMatchObject({ ...counts, waiting: 1 });
  await clock.advance(1_000);
  expect((await ended).filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  expect(limiter.stats()).toMatchObject({ ...counts, granted: 2, waiting: 0 });
});

it("waits for the turn of the next, and tells of it, when the first in line leaves", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 10, perMs: 1_000, burst: 4, clock });
  const call = new AbortController();
  limiter.tryTake("a", 4);
  const big = limiter.take("a", { cost: 4, signal: call.signal }).catch(() => {});
  const small = limiter.take("a", { cost: 2 }).then(() => clock.now());
  expect(limiter.retryAfterMs("a")).toBe(700);
  call.abort();
  await big;
  expect([limiter.retryAfterMs("a"), clock.timers]).toEqual([300, 1]);
  await clock.advance(1_000);
  expect(await small).toBe(200);
});

it("grants nothing to a waiter that leaves by the same abort as the one ahead of it", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 10, perMs: 1_000, burst: 4, clock });
  const call = new AbortController();
  limiter.tryTake("a", 4);
  const both = [4, 1].map((cost) => limiter.take("a", { cost, signal: call.signal }));
  await clock.advance(300);
  call.abort("over");
  expect((await Promise.allSettled(both)).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect([limiter.stats().granted, limiter.tryTake("a", 3), clock.timers]).toEqual([1, true, 0]);
});

it("calls fn synchronously when a token is there", async () => {
  const limiter = new RateLimiter({ count: 1, perMs: 10, clock: new VirtualClock() });
  let called = false;
  const result = limiter.run(({ signal }) => {
    called = true;
    return signal;
  });
  expect(called).toBe(true);
  expect(await result).toBe(undefined);
});

it("gives the token back, to the next in line, when the signal aborts between grant and call", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 1, perMs: 100, clock });
  const call = new AbortController();
  limiter.tryTake();
  const log: string[] = [];
  const first = limiter.run(() => log.push("never"), { signal: call.signal });
  void limiter.run(() => log.push(`second at ${clock.now()}`));
  clock.setTimer(100, { onTimer: () => call.abort("late") }); // fires after the limiter's own timer, in the same turn
  const refused = expect(first).rejects.toBe("late");
  await clock.advance(100);
  await refused;
  expect(log).toEqual(["second at 100"]);
  expect([clock.timers, limiter.stats().granted]).toEqual([0, 2]);
});

it("keeps the token of a call that fails: it was a start", async () => {
  const limiter = new RateLimiter({ count: 1, perMs: 100, clock: new VirtualClock() });
  const failure = new Error("no");
  await expect(limiter.run(() => Promise.reject(failure))).rejects.toBe(failure);
  expect(limiter.tryTake()).toBe(false);
});

it("tells when to come back, behind all that wait", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 10, perMs: 1_000, burst: 2, maxWaiting: 2, clock });
  expect([limiter.retryAfterMs("a"), limiter.stats().keys]).toEqual([0, 0]); // a question makes no key
  limiter.tryTake("a", 2);
  expect([limiter.retryAfterMs("a"), limiter.retryAfterMs("a", 2)]).toEqual([100, 200]);
  const waiters = [limiter.take("a", { cost: 2 }), limiter.take("a")];
  await clock.advance(50);
  expect([limiter.retryAfterMs("a"), limiter.stats().oldestWaitMs]).toEqual([350, 50]);
  const error: unknown = await limiter.take("a").catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(RateLimitedError);
  expect(error).toMatchObject({ code: "RATE_LIMITED", retryAfterMs: 350 });
  await clock.advance(250);
  await Promise.all(waiters);
});

it("lets nobody wait with maxWaiting 0, for one key as for all others", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 1, perMs: 10, maxWaiting: 0, clock });
  expect(await limiter.run(() => 1, { key: "a" })).toBe(1);
  await expect(limiter.run(() => 2, { key: "a" })).rejects.toMatchObject({ retryAfterMs: 10 });
  expect(await limiter.run(() => 3, { key: "b" })).toBe(3);
  expect(clock.timers).toBe(0);
});

it("forgets the keys whose bucket is full again while others are used, by no timer", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 1, perMs: 1_000, clock });
  for (let user = 0; user < 1_000; user += 1) limiter.tryTake(`user-${user}`);
  expect([limiter.stats().keys, clock.timers]).toEqual([1_000, 0]);
  await clock.advance(1_000);
  for (let call = 0; call <= 1_000; call += 1) limiter.tryTake("steady");
  expect(limiter.stats()).toMatchObject({ keys: 1, evicted: 0 });
});

it("never forgets a key whose bucket is not full, or that somebody waits for", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 1, perMs: 1_000, clock });
  limiter.tryTake("spent");
  limiter.tryTake("awaited");
  const waiter = limiter.take("awaited");
  await clock.advance(999);
  for (let call = 0; call < 100; call += 1) limiter.tryTake(`user-${call}`);
  expect(limiter.tryTake("spent")).toBe(false);
  await clock.advance(1);
  await waiter;
  expect(limiter.tryTake("awaited")).toBe(false);
});

it("remembers maxKeys at most, and lets the fullest go first", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 10, perMs: 1_000, burst: 10, maxKeys: 3, clock });
  limiter.tryTake("drained", 10);
  limiter.tryTake("touched", 1);
  limiter.tryTake("half", 5);
  limiter.tryTake("new", 1);
  expect(limiter.stats()).toMatchObject({ keys: 3, evicted: 1 });
  expect(["drained", "half", "touched"].map((key) => limiter.retryAfterMs(key, 10))).toEqual([1_000, 500, 0]);
});

it("keeps the keys that somebody waits for, beyond maxKeys if need be", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 1, perMs: 100, maxKeys: 2, clock });
  const waiters = ["a", "b", "c"].map((key) => {
    limiter.tryTake(key);
    return limiter.take(key);
  });
  expect(limiter.stats()).toMatchObject({ keys: 3, evicted: 0, waiting: 3 });
  await clock.advance(100);
  await Promise.all(waiters);
  expect(limiter.stats().granted).toBe(6);
});

it("leaves no dead waiter and no timer behind when the clock or the signal throws", async () => {
  const clock = new VirtualClock();
  const broken = new AbortController().signal;
  broken.addEventListener = fail;
  const first = new RateLimiter({ count: 1, perMs: 10, clock: { ...systemClock, setTimer: fail } });
  const second = new RateLimiter({ count: 1, perMs: 10, clock });
  for (const limiter of [first, second]) limiter.tryTake();
  await expect(first.take()).rejects.toThrow("broken");
  await expect(second.take(undefined, { signal: broken })).rejects.toThrow("broken");
  expect([first.stats().waiting, second.stats().waiting, clock.timers]).toEqual([0, 0, 0]);
  await clock.advance(10);
  expect(second.tryTake()).toBe(true);
});

it("refuses bad options, costs and keys, and rejects where it promises", async () => {
  const good = { count: 5, perMs: 1_000, burst: 2 };
  for (const bad of [{ count: 0 }, { count: 1.5 }, { perMs: 0 }, { perMs: Infinity }, { burst: 0 }, { maxKeys: 0 }])
    expect(() => new RateLimiter({ ...good, ...bad })).toThrow(RangeError);
  expect(() => new RateLimiter({ ...good, maxWaiting: -1 })).toThrow(RangeError);
  const limiter = new RateLimiter({ ...good, clock: new VirtualClock() });
  for (const cost of [0, 3, 1.5, Number.NaN]) {
    expect(() => limiter.tryTake("a", cost)).toThrow(RangeError);
    await expect(limiter.take("a", { cost })).rejects.toThrow(RangeError);
    await expect(limiter.run(() => 1, { key: "a", cost })).rejects.toThrow(RangeError);
  }
  await expect(limiter.take(7 as unknown as string)).rejects.toThrow(TypeError);
  expect(limiter.stats()).toMatchObject({ keys: 0, granted: 0 });
});

it("keeps the limit, the order and its bookkeeping under any plan of takes, aborts, timeouts and pauses", () => {
  const call = fc.record({
    verb: fc.constantFrom("tryTake", "take", "take", "hurry", "run"),
    key: fc.constantFrom("a", "b"),
    cost: fc.integer({ min: 1, max: 3 }),
  });
  const step = fc.oneof(
    { weight: 4, arbitrary: call },
    { weight: 2, arbitrary: fc.record({ pauseMs: fc.constantFrom(0, 3, 10, 25) }) },
    { weight: 1, arbitrary: fc.constant("abort" as const) },
  );
  const plans = fc.asyncProperty(fc.integer({ min: 3, max: 4 }), fc.array(step, { maxLength: 40 }), play);
  return fc.assert(plans, { numRuns: 500 });
});

type Step =
  | "abort"
  | { readonly pauseMs: number }
  | { readonly verb: string; readonly key: string; readonly cost: number };

const INTERVAL_MS = 10;
const COUNT = 4;

async function play(burst: number, plan: readonly Step[]): Promise<void> {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: COUNT, perMs: COUNT * INTERVAL_MS, burst, maxKeys: 2, clock });
  const starts: { readonly id: number; readonly key: string; readonly cost: number; readonly at: number }[] = [];
  let [call, settled, waits] = [new AbortController(), 0, 0];
  const end = (): void => void (settled += 1);
  for (const [id, step] of [...plan, { pauseMs: 0 }].entries()) {
    const { signal } = call;
    if (step === "abort") {
      call.abort("abort");
      call = new AbortController();
    } else if ("pauseMs" in step) await clock.advance(step.pauseMs);
    else {
      const { verb, key, cost } = step;
      const note = (): unknown => starts.push({ id, key, cost, at: clock.now() });
      const options = { cost, signal, timeoutMs: verb === "hurry" ? 15 : undefined };
      if (verb === "tryTake") void (limiter.tryTake(key, cost) && note());
      else {
        waits += 1;
        if (verb === "run") limiter.run(note, { ...options, key }).then(end, end);
        else limiter.take(key, options).then(note).then(end, end);
      }
    }
    await turn();
    expect(waits - settled).toBe(limiter.stats().waiting);
    expect(getEventListeners(signal, "abort").length).toBeLessThanOrEqual(1);
    expect(clock.timers > 0).toBe(limiter.stats().waiting > 0);
  }
  await clock.advance(10_000);
  expect([limiter.stats().waiting, clock.timers, waits - settled]).toEqual([0, 0, 0]);
  for (const key of ["a", "b"]) {
    const own = starts.filter((start) => start.key === key);
    expect(own.map(({ id }) => id)).toEqual(own.map(({ id }) => id).toSorted((a, b) => a - b));
    for (const { at: from } of own) {
      const span = own.filter(({ at }) => at >= from && at < from + COUNT * INTERVAL_MS);
      expect(span.reduce((sum, { cost }) => sum + cost, 0)).toBeLessThanOrEqual(COUNT + burst - 1);
    }
  }
}

function fail(): never {
  throw new Error("broken");
}
