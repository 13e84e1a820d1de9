import { AsyncLocalStorage } from "node:async_hooks";

import { expect, it } from "vitest";
import { SelfWaitError } from "../errors.ts";
import { turn } from "../testing/turn.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import type { LimiterOptions } from "./limiter/options.ts";
import { Limiter } from "./limiter.ts";

it("C041: calls that wait for the slots of their own callers end with an error that says so, and those come on", async () => {
  const { clock, limit, nest } = stage(2);
  const outers = Promise.allSettled([nest(), nest()]);
  await clock.advance(499);
  expect(limit.stats()).toMatchObject({ running: 2, waiting: 2, selfWaits: 0 });
  await clock.advance(1);
  const [first, second] = await outers;
  expect(first).toMatchObject({ status: "fulfilled", value: "inner" }); // with the slot that the second gave back
  expect(second).toMatchObject({ status: "rejected", reason: { code: "SELF_WAIT" } });
  expect([limit.running, limit.waiting, limit.stats().selfWaits, clock.timers]).toEqual([0, 0, 1, 0]);
});

it("F02.2: finds it in a pool of any size, also when all outer calls have waited for their slots", async () => {
  const { clock, limit, nest } = stage(8);
  const busy = Array.from({ length: 8 }, () => limit.run(() => turn()));
  const outers = Promise.allSettled(Array.from({ length: 8 }, nest));
  await Promise.all(busy);
  await clock.advance(500);
  const outcomes = await outers;
  const failed = outcomes.filter(({ status }) => status === "rejected");
  expect(failed).toMatchObject([{ reason: { code: "SELF_WAIT" } }]);
});

it("A12: finds it on a single slot, through a call of another limiter", async () => {
  const { clock, limit } = stage(1);
  const other = new Limiter(1, { clock });
  const outer = limit.run(async () => {
    await turn();
    return other.run(async () => {
      await turn();
      return limit.run(() => "inner");
    });
  });
  const result = expect(outer).rejects.toBeInstanceOf(SelfWaitError);
  await turn(); // into the other one
  await clock.advance(500);
  await result;
});

it("ends nothing while a slot is held by who waits for no other call, however long", async () => {
  const { clock, limit, nest } = stage(2);
  const work = Promise.withResolvers<void>();
  const long = limit.run(() => work.promise);
  const outer = nest();
  await clock.advance(1e6);
  expect([limit.waiting, limit.stats().selfWaits, clock.timers]).toEqual([1, 0, 0]);
  work.resolve();
  expect([await outer, await long]).toEqual(["inner", undefined]);
});

it("ends nothing while slots turn over, nor for calls that were handed in from outside", async () => {
  const { clock, limit, nest } = stage(1);
  const outer = nest();
  await clock.advance(300);
  limit.resize(2); // the inner one gets the new slot
  expect(await outer).toBe("inner");
  limit.resize(1);
  const work = Promise.withResolvers<void>();
  const long = limit.run(() => work.promise);
  const waits = limit.run(() => "outside");
  await clock.advance(1e6);
  work.resolve();
  expect([await waits, await long, limit.stats().selfWaits]).toEqual(["outside", undefined, 0]);
});

it("forgets a wait that has ended otherwise: by abort, timeout or clearing", async () => {
  const { clock, limit, work, nest } = stage(1);
  const stop = new AbortController();
  const outer = limit.run(async () => {
    await turn();
    const inner = [limit.run(() => {}, { signal: stop.signal }), limit.run(() => {}, { timeoutMs: 200 })];
    return Promise.allSettled([...inner, work.promise]);
  });
  await clock.advance(100);
  stop.abort("enough");
  await clock.advance(1e6);
  work.resolve();
  expect(await outer).toMatchObject([{ reason: "enough" }, { reason: { code: "TIMEOUT" } }, { status: "fulfilled" }]);
  expect([limit.stats().selfWaits, clock.timers]).toEqual([0, 0]);
  await finds(nest, clock);
});

it("counts a call no longer once it has ended, though what it left behind still waits", async () => {
  const { clock, limit, work, nest } = stage(1);
  const left: Promise<unknown>[] = [];
  await limit.run(async () => {
    await turn();
    left.push(limit.run(() => work.promise));
  });
  const waits = limit.run(() => "outside");
  await clock.advance(1e6);
  work.resolve();
  expect([await waits, await Promise.all(left), limit.stats().selfWaits]).toEqual(["outside", [undefined], 0]);
  await finds(nest, clock);
});

it("finds it for weights, where a slot stays free that is too few", async () => {
  const { clock, limit } = stage(3);
  const outer = limit.run(
    async () => {
      await turn();
      return limit.run(() => "inner", { weight: 2 });
    },
    { weight: 2 },
  );
  const result = expect(outer).rejects.toBeInstanceOf(SelfWaitError);
  await clock.advance(500);
  await result;
});

it("says nothing while it is paused with a slot to give", async () => {
  const { clock, limit, nest } = stage(2);
  limit.pause();
  limit.resume();
  const outer = nest();
  limit.pause();
  await clock.advance(1e6);
  expect([limit.waiting, limit.stats().selfWaits]).toEqual([1, 0]);
  limit.resume();
  expect(await outer).toBe("inner");
});

it("goes by stallMs, and can be switched off", async () => {
  const quick = stage(1, { stallMs: 20 });
  const found = expect(quick.nest()).rejects.toBeInstanceOf(SelfWaitError);
  await quick.clock.advance(20);
  await found;
  const off = stage(1, { stallMs: Infinity });
  const outer = off.nest();
  await off.clock.advance(1e6);
  expect([off.limit.waiting, off.clock.timers]).toEqual([1, 0]);
  off.limit.clear("given up");
  await expect(outer).rejects.toBe("given up");
  expect(() => new Limiter(1, { stallMs: -1 })).toThrow("stallMs must be >= 0, got -1");
});

it("knows after thousands of calls that none is made within another, and learns it when one is", async () => {
  const { clock, limit, nest } = stage(2);
  for (let call = 0; call < 3_000; call += 1) await limit.run(() => {});
  for (let call = 0; call < 200; call += 1) expect(await nest()).toBe("inner"); // a few are looked at
  const outers = Promise.allSettled([nest(), nest()]);
  await clock.advance(500);
  expect((await outers).map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
});

it("C042: keeps the context of who submitted and changes that of nobody else", async () => {
  const user = new AsyncLocalStorage<string>();
  const { limit } = stage(1);
  const seen: (string | undefined)[] = [];
  const look = async (): Promise<void> => {
    seen.push(user.getStore());
    await turn();
    seen.push(user.getStore());
  };
  const calls = [user.run("a", () => limit.run(look)), user.run("b", () => limit.run(look)), limit.run(look)];
  seen.push(user.getStore());
  await Promise.all(calls);
  expect([...seen, user.getStore()]).toEqual(["a", undefined, "a", "b", "b", undefined, undefined, undefined]);
});

/** On a single slot. */
async function finds(nest: () => Promise<string>, clock: VirtualClock): Promise<void> {
  const found = expect(nest()).rejects.toBeInstanceOf(SelfWaitError);
  await clock.advance(500);
  await found;
}

interface Stage {
  readonly clock: VirtualClock;
  readonly limit: Limiter;
  readonly work: PromiseWithResolvers<void>;
  /** A call that makes another in the same limiter once all slots may be taken, and waits for it. */
  readonly nest: () => Promise<string>;
}

function stage(concurrency: number, options: LimiterOptions = {}): Stage {
  const clock = new VirtualClock();
  const limit = new Limiter(concurrency, { clock, ...options });
  return {
    clock,
    limit,
    work: Promise.withResolvers(),
    nest: () =>
      limit.run(async () => {
        await turn();
        return limit.run(() => "inner");
      }),
  };
}
