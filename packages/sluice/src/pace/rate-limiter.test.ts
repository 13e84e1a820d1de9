import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import type { Clock, TimerTask } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { RateLimitedError } from "../errors.ts";
import { type AbortSubject, abortCases } from "../testing/abort-suite.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { RateLimiter } from "./rate-limiter.ts";
import type { RateRule } from "./rate-rule.ts";
import type { TokenBucketLimit } from "./token-bucket.ts";

/** Allows what it is told to, and can't say when more will come: so whoever waits for it has time to change their mind. */
class Doled implements RateRule {
  readonly maxCost = 1;
  left = 0;

  turnAt(_cost: number, now: number): number {
    return this.left > 0 ? now : now + 1;
  }

  take(): void {
    this.left -= 1;
  }

  giveBack(): void {
    this.left += 1;
  }
}

const subjects: readonly AbortSubject[] = (["take", "run"] as const).map((verb) => ({
  name: `RateLimiter.${verb}`,
  open(clock) {
    const rule = new Doled();
    const limiter = new RateLimiter({ rule, clock });
    return {
      call: (options) => (verb === "take" ? limiter.take(options) : limiter.run(() => {}, options)),
      satisfy() {
        rule.left += 1;
        limiter.pauseFor(0);
      },
      state: () => ({ left: rule.left, waiting: limiter.waiting }),
      giveBack: () => rule.giveBack(),
    };
  },
}));
for (const subject of subjects) for (const { title, run } of abortCases(subject)) it(title, run);

/** When each of `calls` that all come at 0 starts. */
async function backlog(calls: number, options: TokenBucketLimit): Promise<number[]> {
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

it("J01: lets a list of 20,000 start no faster than the provider allows, though all of it was handed over in one turn", async () => {
  const starts = await backlog(20_000, { count: 100, perMs: 1_000, burst: 10 });
  expect(starts.length).toBe(20_000);
  expect(most(starts, 1_000)).toBe(109);
});

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

it("keeps the process alive for who waits, and for nothing else, however the wall clock is set meanwhile", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 1, perMs: 100, clock });
  const starts: number[] = [];
  for (let call = 0; call < 3; call += 1) void limiter.run(() => starts.push(clock.now()));
  clock.jumpWall(-3_600_000);
  await clock.runToIdle(); // stops where no timer but those in the background is left
  expect([starts, clock.now(), clock.timers]).toEqual([[0, 100, 200], 200, 0]);
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

it("serves in the order of arrival, also those who want more than those behind them", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 10, perMs: 1_000, burst: 4, clock });
  const log: string[] = [];
  limiter.tryTake(4);
  for (const [name, cost] of [
    ["big", 4],
    ["small", 1],
    ["last", 2],
  ] as const)
    // prettier-ignore
    void limiter.take({ cost }).then(() => log.push(`${name} at ${clock.now()}`));
  await clock.advance(0);
  expect([limiter.tryTake(), limiter.stats().waiting]).toEqual([false, 3]);
  await clock.advance(1_000);
  expect(log).toEqual(["big at 400", "small at 500", "last at 700"]);
  expect(clock.timers).toBe(0);
});

it("lets no newcomer overtake those who wait, though tokens for it are there", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 10, perMs: 1_000, burst: 4, clock });
  limiter.tryTake(4);
  const big = limiter.take({ cost: 4 });
  await clock.advance(200);
  expect(limiter.tryTake(1)).toBe(false);
  await clock.advance(200);
  await big;
});

it("serves those behind a waiter that leaves as soon as they can be", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 10, perMs: 1_000, burst: 4, clock });
  const call = new AbortController();
  const log: string[] = [];
  limiter.tryTake(4);
  const big = limiter.take({ cost: 4, signal: call.signal });
  void limiter.take({ cost: 2 }).then(() => log.push(`small at ${clock.now()}`));
  await clock.advance(250);
  call.abort(new Error("changed my mind"));
  await expect(big).rejects.toBe(call.signal.reason);
  await clock.advance(0);
  expect(log).toEqual(["small at 250"]);
  expect(clock.timers).toBe(0);
});

it("counts each take that got nothing by the reason, while others still wait and after", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 1, perMs: 1_000, maxWaiting: 2, clock });
  const call = new AbortController();
  limiter.tryTake();
  const takes = [{ timeoutMs: 0 }, { timeoutMs: 10 }, { signal: call.signal }, {}, {}].map((options) =>
    limiter.take(options),
  );
  const ended = Promise.allSettled(takes);
  await clock.advance(10);
  call.abort();
  const counts = { granted: 1, rejected: 2, timedOut: 1, aborted: 1 };
  expect(limiter.stats()).toMatchObject({ ...counts, waiting: 1 });
  await clock.advance(1_000);
  expect((await ended).filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  expect(limiter.stats()).toMatchObject({ ...counts, granted: 2, waiting: 0 });
});

it("waits for the turn of the next, and tells of it, when the first in line leaves", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 10, perMs: 1_000, burst: 4, clock });
  const call = new AbortController();
  limiter.tryTake(4);
  const big = limiter.take({ cost: 4, signal: call.signal }).catch(() => {});
  const small = limiter.take({ cost: 2 }).then(() => clock.now());
  expect(limiter.retryAfterMs()).toBe(700);
  call.abort();
  await big;
  expect([limiter.retryAfterMs(), clock.timers]).toEqual([300, 1]);
  await clock.advance(1_000);
  expect(await small).toBe(200);
});

it("grants nothing to a waiter that leaves by the same abort as the one ahead of it", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 10, perMs: 1_000, burst: 4, clock });
  const call = new AbortController();
  limiter.tryTake(4);
  const both = [4, 1].map((cost) => limiter.take({ cost, signal: call.signal }));
  await clock.advance(300);
  call.abort("over");
  expect((await Promise.allSettled(both)).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect([limiter.stats().granted, limiter.tryTake(3), clock.timers]).toEqual([1, true, 0]);
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
  expect(limiter.retryAfterMs()).toBe(0);
  limiter.tryTake(2);
  expect([limiter.retryAfterMs(), limiter.retryAfterMs(2)]).toEqual([100, 200]);
  const waiters = [limiter.take({ cost: 2 }), limiter.take()];
  await clock.advance(50);
  expect([limiter.retryAfterMs(), limiter.stats().oldestWaitMs]).toEqual([350, 50]);
  const error: unknown = await limiter.take().catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(RateLimitedError);
  expect(error).toMatchObject({ code: "RATE_LIMITED", retryAfterMs: 350 });
  await clock.advance(250);
  await Promise.all(waiters);
});

it("lets nobody wait with maxWaiting 0", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 1, perMs: 10, maxWaiting: 0, clock });
  expect(await limiter.run(() => 1)).toBe(1);
  await expect(limiter.run(() => 2)).rejects.toMatchObject({ retryAfterMs: 10 });
  expect(() => limiter.reserve()).toThrow(RateLimitedError);
  expect(clock.timers).toBe(0);
});

it("never waits for what can't come in time, and says at once how long it would have been", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 10, perMs: 1_000, clock });
  limiter.tryTake();
  const patient = limiter.take({ timeoutMs: 100 });
  await expect(limiter.take({ timeoutMs: 199 })).rejects.toMatchObject({ code: "RATE_LIMITED", retryAfterMs: 200 });
  await expect(limiter.run(() => 1, { timeoutMs: 199 })).rejects.toThrow(RateLimitedError);
  await expect(limiter.take({ timeoutMs: 0 })).rejects.toMatchObject({ code: "TIMEOUT", timeoutMs: 0 });
  expect([limiter.waiting, clock.timers]).toEqual([1, 2]);
  await clock.advance(100);
  await patient; // at its very end
  expect(limiter.stats()).toMatchObject({ granted: 2, rejected: 2, timedOut: 1 });
});

it("reserves a place that knows when its turn comes, and gives it up for those behind", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 10, perMs: 1_000, clock });
  const [now, next, last] = [limiter.reserve(), limiter.reserve(), limiter.reserve()];
  expect([now, next, last].map(({ waitMs, readyAt }) => [waitMs, readyAt])).toEqual(
    [0, 100, 200].map((ms) => [ms, ms]),
  );
  await now.ready;
  const behind = limiter.take().then(() => clock.now());
  await clock.advance(50);
  expect([next.cancel(), next.cancel(), limiter.retryAfterMs()]).toEqual([true, false, 250]);
  await clock.advance(50);
  await last.ready; // moved up
  await clock.advance(100);
  expect([await behind, limiter.waiting, clock.timers]).toEqual([200, 0, 0]);
});

it("gives back what a reservation had taken, but for what has flowed back since", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 10, perMs: 1_000, burst: 4, clock });
  const [all, other] = [limiter.reserve(4), limiter.reserve()];
  await clock.advance(100);
  await other.ready;
  await clock.advance(50);
  expect(limiter.retryAfterMs()).toBe(50);
  expect([all.cancel(), limiter.retryAfterMs(3), limiter.retryAfterMs(4)]).toEqual([true, 0, 100]);
  expect([other.cancel(), limiter.retryAfterMs(4), limiter.stats().granted]).toEqual([true, 50, 0]);
  await clock.advance(50);
  expect([limiter.tryTake(4), limiter.tryTake()]).toEqual([true, false]);
});

it("gives no second burst for a reservation that is cancelled long after its turn", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 10, perMs: 1_000, clock });
  const old = limiter.reserve();
  await clock.advance(1_000);
  expect(limiter.tryTake()).toBe(true);
  expect([old.cancel(), limiter.tryTake()]).toEqual([true, false]);
});

it("rejects a reservation that the new limit can't hold, which then can't be cancelled", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 10, perMs: 1_000, burst: 3, clock });
  limiter.tryTake(3);
  const place = limiter.reserve(3);
  const refused = expect(place.ready).rejects.toThrow(RangeError);
  limiter.setRate({ count: 10, perMs: 1_000, burst: 2 });
  await refused;
  expect([place.cancel(), limiter.retryAfterMs(), clock.timers]).toEqual([false, 100, 0]);
});

it("wakes those who wait when a reservation gives its tokens back", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 10, perMs: 1_000, burst: 2, clock });
  const both = limiter.reserve(2);
  const waiter = limiter.take({ cost: 2 }).then(() => clock.now());
  both.cancel();
  expect([await waiter, clock.timers]).toEqual([0, 0]);
});

it("C119: a lower rate makes no debt, a higher one no gift, and the burst is the new one at once", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 1_000, perMs: 1_000, burst: 1_000, clock });
  limiter.tryTake(1_000);
  limiter.setRate({ count: 10, perMs: 1_000, burst: 10 });
  expect(limiter.retryAfterMs()).toBeCloseTo(100, 3);
  await clock.advance(1_050);
  expect(limiter.retryAfterMs(10)).toBe(0);
  limiter.setRate({ count: 1, perMs: 1_000, burst: 4 });
  expect([limiter.tryTake(4), limiter.tryTake()]).toEqual([true, false]);
  await clock.advance(1_500); // one token and a half
  limiter.setRate({ count: 1_000, perMs: 1_000, burst: 1_000 });
  expect([limiter.tryTake(), limiter.tryTake()]).toEqual([true, false]);
  expect(limiter.retryAfterMs(1)).toBeCloseTo(0.5, 3);
});

it("C124: goes on to refill at its rate, however often that is set", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 1, perMs: 1_000, burst: 5, clock });
  limiter.tryTake(5);
  const starts: number[] = [];
  for (let call = 0; call < 10; call += 1) void limiter.take().then(() => starts.push(clock.now()));
  for (let ms = 0; ms < 10_000; ms += 100) {
    await clock.advance(100);
    limiter.setRate({ count: 1, perMs: 1_000 });
  }
  expect(starts).toEqual(Array.from({ length: 10 }, (_, second) => (second + 1) * 1_000));
});

it("serves those who wait by the rate that is set, and turns away who wants more than it ever holds", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 1, perMs: 1_000, burst: 3, clock });
  limiter.tryTake(3);
  const [big, small] = [limiter.take({ cost: 3 }), limiter.take().then(() => clock.now())];
  const refused = expect(big).rejects.toThrow(RangeError);
  limiter.setRate({ count: 10, perMs: 1_000, burst: 2 });
  await refused;
  expect(limiter.retryAfterMs()).toBe(200);
  await clock.advance(100);
  expect([await small, clock.timers, limiter.stats().rejected]).toEqual([100, 0, 1]);
  expect(() => limiter.setRate({ count: 0, perMs: 1 })).toThrow(RangeError);
  expect(limiter.retryAfterMs()).toBe(100); // a bad one has changed nothing
  expect(() => new RateLimiter({ rule: new Doled(), clock }).setRate({ count: 1, perMs: 1 })).toThrow(TypeError);
});

it("J30: lets nobody start while it is paused, such as after an answer that said Retry-After", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 10, perMs: 1_000, burst: 2, clock });
  const starts: number[] = [];
  const waits = Array.from({ length: 4 }, () => limiter.take().then(() => starts.push(clock.now())));
  limiter.pauseFor(3_000);
  limiter.pauseFor(1_000); // the longer one counts
  expect([limiter.tryTake(), limiter.retryAfterMs()]).toEqual([false, 3_100]);
  const hurried = expect(limiter.take({ timeoutMs: 3_050 })).rejects.toThrow(RateLimitedError);
  await clock.advance(4_000);
  await Promise.all([...waits, hurried]);
  expect(starts).toEqual([0, 0, 3_000, 3_000]);
  for (const bad of [-1, Infinity, Number.NaN]) expect(() => limiter.pauseFor(bad)).toThrow(RangeError);
});

it("ends the wait of who would have been in time, but for a pause that came later", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 1, perMs: 100, clock });
  limiter.tryTake();
  const late = limiter.take({ timeoutMs: 150 });
  const ended = expect(late).rejects.toMatchObject({ code: "TIMEOUT", timeoutMs: 150 });
  limiter.pauseFor(1_000);
  await clock.advance(150);
  await ended;
  expect([limiter.waiting, clock.timers]).toEqual([0, 0]);
});

it("lets no more than a full bucket out when time jumps, as after the process was suspended", async () => {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 10, perMs: 1_000, burst: 5, clock });
  limiter.tryTake(5);
  const starts: number[] = [];
  for (let call = 0; call < 20; call += 1) void limiter.take().then(() => starts.push(clock.now()));
  let [jumpMs, timers] = [0, [] as TimerTask[]];
  const frozen = new RateLimiter({
    count: 10,
    perMs: 1_000,
    burst: 5,
    clock: { ...systemClock, now: () => jumpMs, setTimer: (_, task) => (timers.push(task), { cancel: () => {} }) },
  });
  frozen.tryTake(5);
  let started = 0;
  for (let call = 0; call < 20; call += 1) void frozen.take().then(() => (started += 1));
  jumpMs = 86_400_000;
  timers.shift()?.onTimer();
  await turn();
  expect([started, frozen.waiting]).toEqual([5, 15]);
  await clock.advance(2_000);
  expect(most(starts, 1_000)).toBeLessThanOrEqual(14);
});

it("is exact at its boundaries also after years of uptime", () => {
  const yearsMs = 10 * 365 * 86_400_000;
  const limits = fc.record({ count: fc.integer({ min: 1, max: 5_000 }), perMs: fc.integer({ min: 1, max: 10_000 }) });
  const gap = fc.oneof(
    fc.integer({ min: 0, max: 2 ** 18 }),
    fc.constantFrom("when due" as const, "just before" as const),
  );
  const gaps = fc.array(gap, { minLength: 1, maxLength: 60 });
  const plans = fc.property(limits, fc.integer({ min: 1, max: 4 }), gaps, (limit, burst, plan) => {
    fc.pre(limit.perMs / limit.count > 1 / 16);
    let now = yearsMs;
    const limiter = new RateLimiter({ ...limit, burst, clock: { ...systemClock, now: () => now } });
    // In units of 2^-14 ms, which are whole for every instant here.
    const interval = BigInt(Math.ceil((limit.perMs / limit.count) * 2 ** 14));
    let full = 0n;
    for (const step of plan) {
      const dueAt = Number(full + interval * (1n - BigInt(burst))) / 2 ** 14;
      if (typeof step === "number") now += step / 2 ** 14;
      else now = Math.max(now, step === "when due" ? dueAt : dueAt - 1 / 2 ** 14);
      const at = BigInt(now * 2 ** 14);
      const after = (full > at ? full : at) + interval;
      const isAllowed = after - at <= interval * BigInt(burst);
      if (isAllowed) full = after;
      expect(limiter.tryTake()).toBe(isAllowed);
    }
  });
  fc.assert(plans, { numRuns: 500 });
});

it("leaves no dead waiter and no timer behind when the clock or the signal throws", async () => {
  const clock = new VirtualClock();
  const broken = new AbortController().signal;
  broken.addEventListener = fail;
  const first = new RateLimiter({ count: 1, perMs: 10, clock: { ...systemClock, setTimer: fail } });
  const second = new RateLimiter({ count: 1, perMs: 10, clock });
  for (const limiter of [first, second]) limiter.tryTake();
  await expect(first.take()).rejects.toThrow("broken");
  await expect(second.take({ signal: broken })).rejects.toThrow("broken");
  expect([first.stats().waiting, second.stats().waiting, clock.timers]).toEqual([0, 0, 0]);
  await clock.advance(10);
  expect(second.tryTake()).toBe(true);
});

it("refuses bad options and costs, and rejects where it promises", async () => {
  const good = { count: 5, perMs: 1_000, burst: 2 };
  for (const bad of [{ count: 0 }, { count: 1.5 }, { perMs: 0 }, { perMs: Infinity }, { burst: 0 }])
    expect(() => new RateLimiter({ ...good, ...bad })).toThrow(RangeError);
  expect(() => new RateLimiter({ ...good, maxWaiting: -1 })).toThrow(RangeError);
  const limiter = new RateLimiter({ ...good, clock: new VirtualClock() });
  for (const cost of [0, 3, 1.5, Number.NaN]) {
    expect(() => limiter.tryTake(cost)).toThrow(RangeError);
    await expect(limiter.take({ cost })).rejects.toThrow(RangeError);
    await expect(limiter.run(() => 1, { cost })).rejects.toThrow(RangeError);
  }
  expect(limiter.stats()).toMatchObject({ granted: 0, rejected: 0 });
});

it("keeps the limit, the order and its bookkeeping under any plan of takes, reservations, aborts, timeouts and pauses", () => {
  const call = fc.record({
    verb: fc.constantFrom("tryTake", "take", "take", "hurry", "run", "reserve"),
    cost: fc.integer({ min: 1, max: 3 }),
  });
  const step = fc.oneof(
    { weight: 4, arbitrary: call },
    { weight: 2, arbitrary: fc.record({ pauseMs: fc.constantFrom(0, 3, 10, 25) }) },
    { weight: 1, arbitrary: fc.constantFrom("abort" as const, "cancel" as const) },
  );
  const plans = fc.asyncProperty(fc.integer({ min: 3, max: 4 }), fc.array(step, { maxLength: 40 }), play);
  return fc.assert(plans, { numRuns: 500 });
});

type Step = "abort" | "cancel" | { readonly pauseMs: number } | { readonly verb: string; readonly cost: number };

const INTERVAL_MS = 10;
const COUNT = 4;

async function play(burst: number, plan: readonly Step[]): Promise<void> {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: COUNT, perMs: COUNT * INTERVAL_MS, burst, clock });
  const starts: { readonly id: number; readonly cost: number; readonly at: number }[] = [];
  const cancels: (() => void)[] = [];
  let [call, settled, waits] = [new AbortController(), 0, 0];
  const end = (): void => void (settled += 1);
  for (const [id, step] of [...plan, { pauseMs: 0 }].entries()) {
    const { signal } = call;
    if (step === "abort") {
      call.abort("abort");
      call = new AbortController();
    } else if (step === "cancel") cancels.shift()?.();
    else if ("pauseMs" in step) await clock.advance(step.pauseMs);
    else {
      const { verb, cost } = step;
      const note = (): unknown => starts.push({ id, cost, at: clock.now() });
      const options = { cost, signal, timeoutMs: verb === "hurry" ? 15 : undefined };
      if (verb === "tryTake") void (limiter.tryTake(cost) && note());
      else if (verb === "reserve") {
        const place = limiter.reserve(cost);
        waits += 1;
        let isOver = false;
        void place.ready
          .then(note)
          .then(() => (isOver = true))
          .then(end);
        cancels.push(() => {
          if (isOver || !place.cancel()) return; // a start is a start
          end();
        });
      } else {
        waits += 1;
        if (verb === "run") limiter.run(note, options).then(end, end);
        else limiter.take(options).then(note).then(end, end);
      }
    }
    await turn();
    expect(waits - settled).toBe(limiter.waiting);
    expect(getEventListeners(signal, "abort").length).toBeLessThanOrEqual(1);
    expect(clock.timers > 0).toBe(limiter.waiting > 0);
  }
  await clock.advance(10_000);
  expect([limiter.waiting, clock.timers, waits - settled]).toEqual([0, 0, 0]);
  expect(starts.map(({ id }) => id)).toEqual(starts.map(({ id }) => id).toSorted((a, b) => a - b));
  for (const { at: from } of starts) {
    const span = starts.filter(({ at }) => at >= from && at < from + COUNT * INTERVAL_MS);
    expect(span.reduce((sum, { cost }) => sum + cost, 0)).toBeLessThanOrEqual(COUNT + burst - 1);
  }
  expect(limiter.stats().granted).toBe(starts.length);
}

function fail(): never {
  throw new Error("broken");
}
