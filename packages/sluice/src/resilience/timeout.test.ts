import { EventEmitter, getEventListeners, once } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { Deadline } from "../clock/deadline.ts";
import { sleep } from "../clock/sleep.ts";
import { TimeoutError } from "../errors.ts";
import { Limiter } from "../flow/limiter.ts";
import { Semaphore } from "../sync/semaphore.ts";
import { type AbortSubject, abortCases } from "../testing/abort-suite.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { retry } from "./retry.ts";
import { timeout } from "./timeout.ts";

const timeoutMs = "it bounds admission, and nobody waits to be admitted";

const subject: AbortSubject = {
  name: "Timeout.run",
  lacks: { timeoutMs },
  open(clock) {
    const policy = timeout(60_000, { clock });
    const calls: (() => void)[] = [];
    let isSatisfied = false;
    return {
      call: (options) =>
        policy.run(({ signal }) => {
          const { promise, resolve, reject } = Promise.withResolvers<void>();
          if (isSatisfied) resolve();
          else calls.push(resolve);
          signal.addEventListener("abort", () => {
            calls.splice(calls.indexOf(resolve), 1);
            reject(signal.reason);
          });
          return promise;
        }, options),
      satisfy() {
        if (calls.length === 0) isSatisfied = true;
        calls.shift()?.();
      },
      state: () => ({ waiting: calls.length }),
    };
  },
};

const cooperative: AbortSubject = {
  name: "Timeout.run, cooperative,",
  lacks: { timeoutMs, waiting: "its answer is that of the work, which is told" },
  open(clock) {
    const policy = timeout(60_000, { mode: "cooperative", clock });
    const calls: (() => void)[] = [];
    return {
      call: (options) => policy.run(() => new Promise<void>((resolve) => void calls.push(resolve)), options),
      satisfy: () => calls.shift()?.(),
      state: () => ({ abandoned: policy.stats().abandoned }),
    };
  },
};
for (const { title, run } of [subject, cooperative].flatMap((each) => abortCases(each))) it(title, run);

const DAY_MS = 86_400_000;

it("hands fn a signal, and its result to the caller", async () => {
  const clock = new VirtualClock();
  let handed: AbortSignal | undefined;
  const result = timeout(50, { clock }).run(({ signal }) => {
    handed = signal;
    return sleep(20, { clock }).then(() => "done");
  });
  await clock.advance(20);
  expect(await result).toBe("done");
  await clock.advance(100);
  expect([handed?.aborted, clock.timers]).toEqual([false, 0]);
});

it("calls fn synchronously, and makes its synchronous throw a rejection", async () => {
  const clock = new VirtualClock();
  const failure = new Error("no");
  let called = false;
  const result = timeout(50, { clock }).run(() => {
    called = true;
    throw failure;
  });
  expect([called, clock.timers]).toEqual([true, 0]);
  await expect(result).rejects.toBe(failure);
});

it("C083: leaves no timer and no listener once fn has settled, at once or later", async () => {
  const clock = new VirtualClock();
  const { signal } = new AbortController();
  const policy = timeout(60_000, { clock });
  const failure = new Error("no");
  const calls = Array.from({ length: 10_000 }, (_, call) =>
    policy.run(() => (call % 2 === 0 ? Promise.resolve(call) : Promise.reject(failure)), { signal }),
  );
  expect(getEventListeners(signal, "abort").length).toBe(1);
  await Promise.allSettled(calls);
  await turn();
  expect([clock.timers, getEventListeners(signal, "abort").length]).toEqual([0, 0]);
  expect(policy.stats()).toEqual({ running: 0, abandoned: 0, timedOut: 0, lateErrors: 0 });
});

it("C085: keeps nothing of 100,000 calls that shared a signal, half of which hung till their limit", async () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage = runInNewContext("gc") as () => void;
  const clock = new VirtualClock();
  const { signal } = new AbortController();
  const policy = timeout(1_000, { clock });
  const batch = async (): Promise<void> => {
    const calls = Array.from({ length: 10_000 }, (_, call) =>
      policy.run((context) => (call % 2 === 0 ? undefined : neverSettles(context.signal)), { signal }),
    );
    const all = Promise.allSettled(calls);
    await clock.advance(1_000);
    await all;
  };
  await batch();
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  for (let round = 0; round < 10; round += 1) await batch();
  collectGarbage();
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(10_000_000);
  expect([clock.timers, getEventListeners(signal, "abort").length, policy.stats().timedOut]).toEqual([0, 0, 55_000]);
}, 30_000);

it("C087: answers at the limit though fn ignores its signal, and handles its late error, counted", async () => {
  const clock = new VirtualClock();
  const policy = timeout(50, { clock });
  let handed: AbortSignal | undefined;
  const call = policy
    .run(async ({ signal }) => {
      handed = signal;
      await sleep(100, { clock });
      throw new Error("late");
    })
    .catch((error: unknown) => error);
  await clock.advance(50);
  expect(await call).toBeInstanceOf(TimeoutError);
  expect(await call).toMatchObject({ code: "TIMEOUT", timeoutMs: 50 });
  expect(handed?.reason).toBe(await call);
  expect(policy.stats()).toEqual({ running: 1, abandoned: 1, timedOut: 1, lateErrors: 0 });
  await clock.advance(50);
  expect(policy.stats()).toEqual({ running: 0, abandoned: 0, timedOut: 1, lateErrors: 1 });
});

it("takes it for no late error that fn ends with the reason it was given", async () => {
  const clock = new VirtualClock();
  const policy = timeout(50, { clock });
  const call = policy.run(({ signal }) => sleep(100, { clock, signal })).catch(() => {});
  await clock.advance(50);
  await call;
  expect(policy.stats()).toEqual({ running: 0, abandoned: 0, timedOut: 1, lateErrors: 0 });
});

it.each([30 * DAY_MS, 2 ** 31, Infinity])("C088: lets work of 20 ms finish under a limit of %d ms", async (limitMs) => {
  const clock = new VirtualClock();
  const call = timeout(limitMs, { clock }).run(() => sleep(20, { clock }).then(() => clock.now()));
  expect(clock.timers).toBe(limitMs < Infinity ? 2 : 1); // the first is that of the work
  await clock.advance(20);
  expect([await call, clock.timers]).toEqual([20, 0]);
});

it.each([30 * DAY_MS, 2 ** 31])("C088: ends work that hangs after %d ms, not before", async (limitMs) => {
  const clock = new VirtualClock();
  const call = timeout(limitMs, { clock })
    .run(() => new Promise(() => {}))
    .catch(() => clock.now());
  await clock.advance(limitMs + 1);
  expect(await call).toBe(limitMs);
});

it("C090: reports the caller's abort as that, the limit as that, and in one turn the abort", async () => {
  const clock = new VirtualClock();
  const abortAt = async (abortMs: number, limitMs: number): Promise<unknown> => {
    const call = new AbortController();
    const policy = timeout(limitMs, { clock });
    const result = policy.run(() => new Promise(() => {}), { signal: call.signal }).catch((error: unknown) => error);
    clock.setTimer(abortMs, { onTimer: () => call.abort("caller") });
    await clock.advance(200);
    expect(policy.stats()).toMatchObject({ abandoned: 1, timedOut: abortMs > limitMs ? 1 : 0 });
    return await result;
  };
  expect(await abortAt(50, 100)).toBe("caller");
  expect(await abortAt(100, 50)).toBeInstanceOf(TimeoutError);
  expect(await abortAt(50, 50)).toBe("caller");
});

it("lets the result win that comes in the turn of the limit, but before it", async () => {
  const clock = new VirtualClock();
  const { promise, resolve } = Promise.withResolvers<string>();
  clock.setTimer(50, { onTimer: () => resolve("just in time") });
  const policy = timeout(50, { clock });
  const call = policy.run(() => promise);
  await clock.advance(50);
  expect(await call).toBe("just in time");
  expect(policy.stats()).toEqual({ running: 0, abandoned: 0, timedOut: 0, lateErrors: 0 });
});

it("makes the signal only for work that asks for it, and aborted if it asks late", async () => {
  const clock = new VirtualClock();
  const signals: boolean[] = [];
  const call = timeout(50, { clock }).run(async (context) => {
    await sleep(100, { clock });
    signals.push(context.signal.aborted);
  });
  const timedOut = expect(call).rejects.toThrow(TimeoutError);
  await clock.advance(100);
  await timedOut;
  expect(signals).toEqual([true]);
});

it("does not call fn when the clock or the signal throws, and leaves nothing", async () => {
  const clock = new VirtualClock();
  const { signal } = new AbortController();
  signal.addEventListener = () => {
    throw new Error("broken");
  };
  let called = false;
  await expect(timeout(50, { clock }).run(() => (called = true), { signal })).rejects.toThrow("broken");
  expect(clock.timers).toBe(0);
  clock.setTimer = () => {
    throw new Error("broken too");
  };
  await expect(timeout(50, { clock }).run(() => (called = true))).rejects.toThrow("broken too");
  expect(called).toBe(false);
});

it("refuses a limit that is none, and bad options", () => {
  for (const bad of [0, -1, Number.NaN]) expect(() => timeout(bad)).toThrow(RangeError);
  expect(() => timeout("5s" as unknown as number)).toThrow(TypeError);
  expect(() => timeout(50, { mode: "aggressive" as "cooperative" })).toThrow(RangeError);
  for (const bad of [{ neededMs: -1 }, { neededMs: Infinity }]) expect(() => timeout(50, bad)).toThrow(RangeError);
  expect(() => timeout(50, { within: 50 as unknown as Deadline })).toThrow("within must be a Deadline");
});

it("answers cooperatively when the work has ended: with the limit, if it ends by its signal", async () => {
  const clock = new VirtualClock();
  const policy = timeout(50, { mode: "cooperative", clock });
  let cleanedAt = 0;
  const answeredAt = policy
    .run(async ({ signal }) => {
      try {
        await sleep(1_000, { clock, signal });
      } finally {
        await sleep(30, { clock });
        cleanedAt = clock.now();
      }
    })
    .catch((error: unknown) => [error, clock.now()]);
  await clock.advance(50);
  expect(policy.stats()).toEqual({ running: 1, abandoned: 0, timedOut: 1, lateErrors: 0 });
  await clock.advance(30);
  expect([await answeredAt, cleanedAt]).toEqual([[expect.any(TimeoutError), 80], 80]);
  expect(policy.stats()).toEqual({ running: 0, abandoned: 0, timedOut: 1, lateErrors: 0 });
});

it("lets cooperative work succeed after its limit, or say in the cause what else it failed with", async () => {
  const clock = new VirtualClock();
  const policy = timeout(50, { mode: "cooperative", clock });
  const late = policy.run(() => sleep(70, { clock }).then(() => "late, but done"));
  const failure = new Error("could not clean up");
  const failing = policy
    .run(() => sleep(70, { clock }).then(() => Promise.reject(failure)))
    .catch((error: unknown) => error);
  await clock.advance(70);
  expect(await late).toBe("late, but done");
  expect(await failing).toBeInstanceOf(TimeoutError);
  expect(await failing).toMatchObject({ timeoutMs: 50, cause: failure });
  expect(policy.stats()).toEqual({ running: 0, abandoned: 0, timedOut: 2, lateErrors: 0 });
});

it("rejects cooperative work that the caller has aborted with the caller's reason, once it has ended", async () => {
  const clock = new VirtualClock();
  const call = new AbortController();
  const policy = timeout(50, { mode: "cooperative", clock });
  const outcome = (fails: () => unknown): Promise<unknown> =>
    policy
      .run(() => sleep(40, { clock }).then(() => Promise.reject(fails() as Error)), call)
      .catch((error: unknown) => [error, clock.now()]);
  const echoes = [() => call.signal.reason as unknown, () => new DOMException("aborted", "AbortError")].map(outcome);
  const other = outcome(() => new Error("other"));
  await clock.advance(10);
  call.abort("caller");
  await clock.advance(30);
  expect(await Promise.all([...echoes, other])).toEqual([
    ["caller", 40],
    ["caller", 40],
    ["caller", 40],
  ]);
  expect(policy.stats()).toEqual({ running: 0, abandoned: 0, timedOut: 0, lateErrors: 1 });
});

it("takes an AbortError, with which Node's own functions end at their signal, for no late error", async () => {
  const clock = new VirtualClock();
  const policy = timeout(50, { clock });
  const call = policy
    .run(({ signal }) => once(new EventEmitter(), "never", { signal }))
    .catch((error: unknown) => error);
  await clock.advance(50);
  expect(await call).toBeInstanceOf(TimeoutError);
  await turn();
  expect(policy.stats()).toEqual({ running: 0, abandoned: 0, timedOut: 1, lateErrors: 0 });
});

it.each([
  ["abandoning around the limit", 50],
  ["cooperative around the limit", 200],
  ["cooperative inside it", 200],
] as const)(
  "C112: with a timeout, %s, a slot is free when the work has ended at 200 ms, once",
  async (kind, answerMs) => {
    const clock = new VirtualClock();
    const policy = timeout(50, { mode: kind.startsWith("abandoning") ? "abandoning" : "cooperative", clock });
    const slots = new Semaphore(10);
    const work = (): Promise<void> => sleep(200, { clock }); // ignores its signal
    const call = kind.endsWith("inside it")
      ? slots.run(({ signal }) => policy.run(work, { signal }))
      : policy.run(({ signal }) => slots.run(work, { signal }));
    const answeredAt = call.then(
      () => clock.now(),
      () => clock.now(),
    );
    for (const [atMs, free] of [
      [49, 9],
      [51, 9],
      [199, 9],
      [200, 10],
      [250, 10],
    ] as const) {
      await clock.advance(atMs - clock.now());
      expect(slots.available).toBe(free);
    }
    expect(await answeredAt).toBe(answerMs);
  },
);

it("C112: an abandoning timeout inside a limit frees the slot at 50 ms, and counts the work that goes on without", async () => {
  const clock = new VirtualClock();
  const policy = timeout(50, { clock });
  const limit = new Limiter(1, { clock });
  const call = expect(limit.run(() => policy.run(() => sleep(200, { clock })))).rejects.toThrow(TimeoutError);
  await clock.advance(50);
  await call;
  expect([limit.stats().running, policy.stats().abandoned]).toEqual([0, 1]);
  await clock.advance(150);
  expect([limit.stats().running, policy.stats().abandoned]).toEqual([0, 0]);
});

it("ends with its deadline, whose reason is the answer, and begins nothing in one that is over", async () => {
  const clock = new VirtualClock();
  using within = Deadline.after(30, { clock });
  const policy = timeout(50, { within, clock });
  let handed: AbortSignal | undefined;
  const hanging = policy
    .run(({ signal }) => ((handed = signal), new Promise(() => {})))
    .catch((error: unknown) => error);
  await clock.advance(30);
  expect([await hanging, handed?.reason]).toEqual([within.signal.reason, within.signal.reason]);
  let called = false;
  await expect(policy.run(() => (called = true))).rejects.toBe(within.signal.reason);
  expect([called, clock.timers]).toEqual([false, 0]);
  expect(policy.stats()).toEqual({ running: 1, abandoned: 1, timedOut: 0, lateErrors: 0 });
});

it("asks at each call for its deadline, and leaves nothing on one that outlives the calls", async () => {
  const clock = new VirtualClock();
  using long = Deadline.after(60_000, { clock });
  let within: Deadline | undefined = long;
  const policy = timeout(50, { within: () => within, neededMs: 100, clock });
  expect(await policy.run(() => "within")).toBe("within");
  expect([getEventListeners(long.signal, "abort").length, clock.timers]).toEqual([0, 1]);
  within = undefined;
  expect(await policy.run(() => "without")).toBe("without");
  within = Deadline.after(99, { clock });
  await expect(policy.run(() => "short")).rejects.toMatchObject({ code: "DEADLINE", leftMs: 99, neededMs: 100 });
  within.close();
});

it("J45: ends one attempt that hangs, and lets a retry have the next", async () => {
  const clock = new VirtualClock();
  const attempt = timeout(3_000, { clock });
  const result = retry({ random: () => 0, clock }).run(({ attempt: number }) =>
    attempt.run(() => (number === 1 ? new Promise<never>(() => {}) : "answered")),
  );
  await clock.advance(3_000);
  expect(await result).toBe("answered");
});

it("answers once, with what came first, and leaves nothing, whatever comes when", () => {
  const at = fc.integer({ min: 1, max: 6 });
  const plans = fc.asyncProperty(at, at, at, fc.boolean(), async (limitMs, abortMs, workMs, fails) => {
    const clock = new VirtualClock();
    const call = new AbortController();
    const policy = timeout(limitMs, { clock });
    const work = Promise.withResolvers<string>();
    const result = policy
      .run(() => work.promise, { signal: call.signal })
      .then(
        (value) => value,
        (error: unknown) => (error instanceof TimeoutError ? "limit" : error),
      );
    clock.setTimer(abortMs, { onTimer: () => call.abort("abort") });
    clock.setTimer(workMs, { onTimer: () => (fails ? work.reject("work") : work.resolve("work")) });
    await clock.advance(10);
    await turn();
    const first = Math.min(limitMs, abortMs, workMs);
    // In one turn an abort is heard at once, before the limit, whose timer was set before that of the work.
    const expected = abortMs === first ? "abort" : limitMs === first ? "limit" : "work";
    expect(await result).toBe(expected);
    const lateErrors = expected !== "work" && fails ? 1 : 0;
    const timedOut = expected === "limit" ? 1 : 0;
    expect(policy.stats()).toEqual({ running: 0, abandoned: 0, timedOut, lateErrors });
    expect([clock.timers, getEventListeners(call.signal, "abort").length]).toEqual([0, 0]);
  });
  return fc.assert(plans, { numRuns: 300 });
});

function neverSettles(_signal: AbortSignal): Promise<void> {
  return new Promise(() => {});
}
