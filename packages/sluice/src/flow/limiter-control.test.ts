import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { ClearedError } from "../errors.ts";
import type { RunContext } from "../policy.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Limiter } from "./limiter.ts";

it("starts nothing while paused, not even in a free slot, and all it may once resumed", async () => {
  const limit = new Limiter(2);
  limit.pause();
  limit.pause();
  const calls = [1, 2, 3].map((id) => limit.run(() => turn(id)));
  expect([limit.paused, limit.running, limit.waiting, limit.saturated]).toEqual([true, 0, 3, false]);
  limit.resume();
  limit.resume();
  expect([limit.paused, limit.running, limit.waiting, limit.saturated]).toEqual([false, 2, 1, true]);
  expect(await Promise.all(calls)).toEqual([1, 2, 3]);
  expect(limit.saturated).toBe(false);
});

it("lets what runs go on while it is paused", async () => {
  const limit = new Limiter(1);
  const running = limit.run(() => turn("done"));
  const waits = limit.run(() => "later");
  limit.pause();
  expect(await running).toBe("done");
  expect([limit.running, limit.waiting]).toEqual([0, 1]);
  limit.resume();
  expect(await waits).toBe("later");
});

it("C034: pausing and resuming leaves the concurrency as it was", async () => {
  const five = gauge(5);
  five.limit.pause();
  for (let call = 0; call < 10; call += 1) five.call();
  five.limit.resume();
  await five.limit.drain();
  expect(five.most()).toBe(5); // (a)

  const one = gauge(1);
  for (let call = 0; call < 20; call += 1) one.call();
  for (let times = 0; times < 3; times += 1) {
    one.limit.pause();
    one.limit.resume();
  }
  await one.limit.drain();
  expect(one.most()).toBe(1); // (b)

  const two = gauge(2);
  await two.limit.run(() => two.limit.pause());
  for (let call = 0; call < 5; call += 1) two.call();
  await turn();
  expect(two.most()).toBe(0);
  two.limit.resume();
  await two.limit.drain();
  expect([two.most(), two.limit.concurrency]).toEqual([2, 2]); // (c)
});

it("C033: clearing settles who waits and leaves what runs, and idle comes when that ends", async () => {
  const clock = new VirtualClock();
  const limit = new Limiter(1, { clock });
  const log: unknown[] = [];
  const note = (what: unknown): unknown => log.push([what, clock.now()]);
  void limit.run(async () => {
    await sleepOn(clock, 100);
    note("ran");
  });
  for (const id of [1, 2, 3]) {
    limit.run(() => expect.unreachable()).catch((error) => note(`${id} ${(error as ClearedError).code}`));
  }
  clock.setTimer(10, { onTimer: () => note(limit.clear()) });
  void limit.drain().then(() => note("idle"));
  await clock.advance(100);
  expect(log).toEqual([
    [3, 10],
    ["1 CLEARED", 10],
    ["2 CLEARED", 10],
    ["3 CLEARED", 10],
    ["ran", 100],
    ["idle", 100],
  ]);
  expect([await limit.run(() => "new"), limit.stats().cleared, limit.clear()]).toEqual(["new", 3, 0]);
});

it("settles dropped callers with a reason of the user's, and admits none of them in between", async () => {
  const limit = new Limiter(2);
  const work = Promise.withResolvers<void>();
  const busy = limit.run(() => work.promise);
  const outcomes = Promise.allSettled([
    limit.run(() => expect.unreachable(), { weight: 2 }),
    limit.run(() => expect.unreachable()), // would fit as soon as the heavy one has gone
  ]);
  limit.clear("new plan");
  expect(await outcomes).toMatchObject([{ reason: "new plan" }, { reason: "new plan" }]);
  const again = limit.run(() => "fits");
  work.resolve();
  expect([await again, await busy, limit.stats().cleared]).toEqual(["fits", undefined, 2]);
  expect(new ClearedError("limiter").message).toBe("the line of the limiter was cleared");
});

it("resolves at once who waits for what is so already, and else only when nothing runs or waits", async () => {
  const limit = new Limiter(1);
  await Promise.all([limit.drain({ timeoutMs: 0 }), limit.empty({ timeoutMs: 0 }), limit.below(1, { timeoutMs: 0 })]);
  limit.pause();
  const waits = limit.run(() => turn());
  const log: string[] = [];
  const idle = limit.drain().then(() => log.push("idle"));
  const empty = limit.empty().then(() => log.push("empty"));
  await turn();
  expect(log).toEqual([]); // nothing runs, but something waits
  limit.resume();
  await empty;
  expect([log, limit.running]).toEqual([["empty"], 1]);
  await Promise.all([idle, waits]);
  expect(log).toEqual(["empty", "idle"]);
});

it.each([
  ["a start", (limit: Limiter) => limit.resize(2)],
  ["an abort", (_: Limiter, call: AbortController) => call.abort()],
  ["a clearing", (limit: Limiter) => limit.clear()],
  ["a timeout", (_: Limiter, __: AbortController, clock: VirtualClock) => clock.advance(50)],
  ["the end of the limiter", (limit: Limiter) => limit.abort()],
] as const)("sees the line get shorter by %s", async (_, shorten) => {
  const clock = new VirtualClock();
  const limit = new Limiter(1, { clock });
  const call = new AbortController();
  const work = Promise.withResolvers<void>();
  const calls = [limit.run(() => work.promise), limit.run(() => {}, { signal: call.signal, timeoutMs: 50 })];
  const seen: string[] = [];
  const below = limit.below(2).then(() => seen.push("below 2"));
  const empty = limit.empty().then(() => seen.push("empty"));
  await below;
  expect(seen).toEqual(["below 2"]);
  void shorten(limit, call, clock);
  await empty;
  expect(seen).toEqual(["below 2", "empty"]);
  work.resolve();
  await Promise.allSettled(calls);
});

it("holds back a producer until fewer than so many wait", async () => {
  const limit = new Limiter(1);
  let most = 0;
  for (let item = 0; item < 20; item += 1) {
    await limit.below(3);
    void limit.run(() => turn());
    most = Math.max(most, limit.waiting);
  }
  await limit.drain();
  expect([most, limit.stats().completed]).toEqual([3, 20]);
  await expect(limit.below(0)).rejects.toThrow("count must be an integer >= 1, got 0");
});

it("skips who is about to hear of an abort, and tells those behind", async () => {
  const limit = new Limiter(1);
  const stop = new AbortController();
  const work = Promise.withResolvers<void>();
  const busy = limit.run(() => work.promise);
  const waits = limit.run(() => {}, { signal: stop.signal });
  const doomed = limit.empty({ signal: stop.signal });
  const behind = limit.empty();
  stop.abort("enough");
  await expect(waits).rejects.toBe("enough");
  await expect(doomed).rejects.toBe("enough");
  await behind; // by who left, since nothing has ended
  work.resolve();
  await busy;
});

it("keeps what was accepted waiting when it is closed while paused", async () => {
  const limit = new Limiter(1);
  limit.pause();
  const waits = limit.run(() => "ran");
  limit.close();
  const idle = limit.drain();
  await turn();
  expect(limit.waiting).toBe(1);
  limit.resume();
  await idle;
  expect(await waits).toBe("ran");
});

it("F02.4: leaves an error that nobody looks at to the runtime, which reports it", async () => {
  const limit = new Limiter(1);
  const seen: unknown[] = [];
  const listeners = process.listeners("unhandledRejection");
  process.removeAllListeners("unhandledRejection");
  process.on("unhandledRejection", (error) => seen.push(error));
  void limit.run(() => Promise.reject(new Error("first")));
  void limit.run(() => Promise.reject(new Error("waited")), { weight: 1 });
  while (seen.length < 2) await turn();
  process.removeAllListeners("unhandledRejection");
  for (const listener of listeners) process.on("unhandledRejection", listener);
  expect(seen).toEqual([new Error("first"), new Error("waited")]);
});

it("holds a list of who waits to be idle, and no chain of callbacks", async () => {
  const limit = new Limiter(1);
  const busy = limit.run(() => turn());
  const idles = Array.from({ length: 50_000 }, () => limit.drain());
  await Promise.all([busy, ...idles]);
  expect(limit.running).toBe(0);
});

it("has never a slot free that somebody waits for, after hours of calls, aborts, timeouts and failures", async () => {
  const clock = new VirtualClock();
  const limit = new Limiter(3, { clock });
  for (let minute = 0; minute < 200; minute += 1) {
    const call = new AbortController();
    for (let id = 0; id < 4; id += 1) {
      const options = { timeoutMs: id === 0 ? 5 : Infinity, signal: id === 1 ? call.signal : undefined };
      limit.run(id === 2 ? fail : ({ signal }) => sleepOn(clock, 30, signal), options).catch(() => {});
      limit.run(() => sleepOn(clock, 10)).catch(() => {});
    }
    call.abort();
    expect(limit.waiting > 0 && limit.running < 3).toBe(false);
    await clock.advance(100);
  }
  expect([limit.running, limit.waiting, clock.timers]).toEqual([0, 0, 0]);
});

function fail(): never {
  throw new Error("no");
}

/** Ends early, and leaves no timer, when its signal aborts. */
function sleepOn(clock: VirtualClock, ms: number, signal?: RunContext["signal"]): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.setTimer(ms, { onTimer: resolve });
    signal?.addEventListener("abort", () => {
      timer.cancel();
      resolve();
    });
  });
}

/** Tells how many ran at a time. */
function gauge(concurrency: number): {
  readonly limit: Limiter;
  readonly call: () => void;
  readonly most: () => number;
} {
  const limit = new Limiter(concurrency);
  let [running, most] = [0, 0];
  return {
    limit,
    most: () => most,
    call: () =>
      void limit.run(async () => {
        most = Math.max(most, (running += 1));
        await turn();
        running -= 1;
      }),
  };
}
