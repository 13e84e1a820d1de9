import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { RateLimiter } from "../pace/rate-limiter.ts"; // what a user brings
import type { RunContext } from "../policy.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Limiter } from "./limiter.ts";

it("tells the caller after maxRunMs, and keeps the slot until the work has really ended", async () => {
  const clock = new VirtualClock();
  const limit = new Limiter(1, { clock });
  const seen: unknown[] = [];
  const work = Promise.withResolvers<void>();
  const slow = limit.run(
    ({ signal }) => {
      signal?.addEventListener("abort", () => seen.push(signal.reason));
      return work.promise;
    },
    { maxRunMs: 50 },
  );
  const next = limit.run(() => "next");
  const late = expect(slow).rejects.toMatchObject({ code: "TIMEOUT", timeoutMs: 50 });
  await clock.advance(49);
  expect(seen).toEqual([]);
  await clock.advance(1);
  await late;
  expect(seen).toMatchObject([{ code: "TIMEOUT", timeoutMs: 50 }]);
  expect(limit.stats()).toMatchObject({ running: 1, waiting: 1, overdue: 1, abandoned: 0, completed: 0 });
  work.resolve();
  expect(await next).toBe("next");
  expect(limit.stats()).toMatchObject({ running: 0, overdue: 1, completed: 2 });
});

it("releases the slot at maxRunMs where that is asked for, and counts what runs on as abandoned", async () => {
  const clock = new VirtualClock();
  const limit = new Limiter(1, { clock });
  const work = Promise.withResolvers<void>();
  const options = { maxRunMs: 50, whenOverdue: "release-slot" } as const;
  const slow = limit.run(() => work.promise, options);
  const next = limit.run(() => "next");
  const late = expect(slow).rejects.toMatchObject({ code: "TIMEOUT" });
  await clock.advance(50);
  await late;
  expect(await next).toBe("next");
  await limit.drain(); // it waits for no abandoned work, which may never end
  expect(limit.stats()).toMatchObject({ running: 0, overdue: 1, abandoned: 1, completed: 2 });
  work.reject(new Error("late")); // heard by nobody
  await turn();
  expect(limit.stats()).toMatchObject({ running: 0, taken: 0, overdue: 1, abandoned: 0, completed: 2 });
});

it("leaves no timer behind a call that ends in time, fails, or is aborted before it starts", async () => {
  const clock = new VirtualClock();
  const limit = new Limiter(1, { clock });
  const call = new AbortController();
  expect(await limit.run(() => "value", { maxRunMs: 50 })).toBe("value");
  await expect(limit.run(fail, { maxRunMs: 50 })).rejects.toThrow("no");
  await expect(limit.run(() => Promise.reject(new Error("async")), { maxRunMs: 50 })).rejects.toThrow("async");
  const busy = limit.run(() => turn());
  const aborted = limit.run(() => expect.unreachable(), { maxRunMs: 50, signal: call.signal });
  call.abort("enough");
  await expect(aborted).rejects.toBe("enough");
  await busy;
  expect([clock.timers, limit.running, limit.stats().overdue]).toEqual([0, 0, 0]);
});

it("counts maxRunMs from the start, not from the call", async () => {
  const clock = new VirtualClock();
  const limit = new Limiter(1, { clock });
  const busy = limit.run(() => sleepOn(clock, 100));
  const waits = limit.run(() => sleepOn(clock, 49).then(() => "in time"), { maxRunMs: 50 });
  await clock.advance(150);
  expect([await busy, await waits, limit.stats().overdue]).toEqual([undefined, "in time", 0]);
});

it("hands fn one signal for its caller, its time and the limiter, made when it is asked for", async () => {
  const clock = new VirtualClock();
  const limit = new Limiter(1, { clock });
  const call = new AbortController();
  const contexts: RunContext[] = [];
  const work = Promise.withResolvers<void>();
  const running = limit.run(
    (context) => {
      contexts.push(context);
      return work.promise;
    },
    { signal: call.signal, maxRunMs: 1_000 },
  );
  call.abort("caller");
  expect(contexts[0]?.signal).toMatchObject({ aborted: true, reason: "caller" }); // also when it is looked at late
  work.resolve();
  await running;
  const { signal } = new AbortController();
  await limit.run((context) => void contexts.push(context), { signal });
  expect(contexts[1]?.signal?.aborted).toBe(false);
  expect(getEventListeners(signal, "abort")).toHaveLength(0); // after the end nothing new is watched
});

it("gives the slot back when the clock can't time the call", async () => {
  const clock: Clock = {
    ...systemClock,
    setTimer() {
      throw new Error("no timers");
    },
  };
  const limit = new Limiter(1, { clock });
  await expect(limit.run(() => expect.unreachable(), { maxRunMs: 5 })).rejects.toThrow("no timers");
  expect(limit.running).toBe(0);
});

it("caps the starts per unit of time beside what runs at a time, in the order of the line", async () => {
  const clock = new VirtualClock();
  const limit = new Limiter(10, { clock, rate: new RateLimiter({ count: 2, perMs: 100, burst: 2, clock }) });
  const starts: [number, number][] = [];
  const calls = [1, 2, 3, 4, 5].map((id) => limit.run(() => void starts.push([id, clock.now()])));
  await clock.advance(1_000);
  await Promise.all(calls);
  expect(starts).toEqual([
    [1, 0],
    [2, 0],
    [3, 50],
    [4, 100],
    [5, 150],
  ]);
  expect([clock.timers, await limit.run(() => "at once")]).toEqual([0, "at once"]);
});

it("takes nothing from the rate for who leaves before the start, and sets no timer for nobody", async () => {
  const clock = new VirtualClock();
  const rate = new RateLimiter({ count: 1, perMs: 100, clock });
  const limit = new Limiter(1, { clock, rate });
  const call = new AbortController();
  await limit.run(() => {});
  const waits = [limit.run(() => {}, { timeoutMs: 10 }), limit.run(() => {}, { signal: call.signal })];
  const outcomes = Promise.allSettled(waits);
  expect(clock.timers).toBe(2); // one is the rate's
  await clock.advance(10);
  call.abort();
  expect([clock.timers, (await outcomes).length, rate.stats().granted]).toEqual([0, 2, 1]);
  await expect(limit.run(() => {}, { timeoutMs: 0 })).rejects.toMatchObject({ code: "TIMEOUT" });
});

it("ends all waits with what a rate throws, and asks it again for who comes then", async () => {
  let isBroken = false;
  const rate = {
    tryTake(): boolean {
      if (isBroken) throw new Error("broken");
      return true;
    },
    retryAfterMs: () => 1,
  };
  const limit = new Limiter(1, { rate });
  const busy = limit.run(() => turn());
  const waits = Promise.allSettled([limit.run(() => 1), limit.run(() => 2)]);
  isBroken = true;
  await busy;
  expect(await waits).toMatchObject([{ reason: { message: "broken" } }, { reason: { message: "broken" } }]);
  await expect(limit.run(() => 3)).rejects.toThrow("broken");
  isBroken = false;
  expect([await limit.run(() => 4), limit.running, limit.stats().rejected]).toEqual([4, 0, 2]);
});

it("makes way for a timer while calls that wait for nothing follow one another without end", async () => {
  const limit = new Limiter(1);
  let [calls, isOver] = [0, false];
  const next = (): void => {
    if (calls === 0) systemClock.setTimer(0, { onTimer: () => void (isOver = true) });
    calls += 1;
    if (!isOver && calls < 1_000_000) void limit.run(next);
  };
  void limit.run(() => turn());
  void limit.run(next);
  await limit.drain();
  expect([isOver, calls > 1]).toEqual([true, true]);
});

it("rests for a turn of the event loop only after 8 ms of starts in one turn", async () => {
  let [now, timers] = [0, 0];
  const tasks: (() => void)[] = [];
  const clock: Clock = {
    ...systemClock,
    now: () => now,
    setTimer(_, task) {
      timers += 1;
      const fire = (): void => task.onTimer();
      tasks.push(fire);
      return { cancel: () => void tasks.splice(tasks.indexOf(fire), 1) };
    },
  };
  const limit = new Limiter(1, { clock });
  const busy = limit.run(() => turn());
  let started = 0;
  for (let call = 0; call < 100; call += 1) {
    void limit.run(() => {
      started += 1;
      now += 1;
    });
  }
  await busy;
  await turn();
  expect([started, limit.waiting, timers]).toEqual([31, 69, 2]); // one set at 16, the next look at 32
  tasks.shift()?.();
  await turn();
  expect([started, limit.waiting]).toEqual([62, 38]);
  while (tasks.length > 0) {
    tasks.shift()?.();
    await turn();
  }
  expect([started, limit.waiting, limit.running]).toEqual([100, 0, 0]);
});

function fail(): never {
  throw new Error("no");
}

function sleepOn(clock: VirtualClock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.setTimer(ms, { onTimer: resolve }));
}
