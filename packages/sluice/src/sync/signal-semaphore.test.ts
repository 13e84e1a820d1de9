import { setImmediate as turn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { ClosedError, QueueFullError, TimeoutError } from "../errors.ts";
import { namedEntries } from "../internal/names.ts";
import { abortCases } from "../testing/abort-suite.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { SignalSemaphore } from "./signal-semaphore.ts";

const subject = {
  name: "SignalSemaphore.acquire",
  open(clock: VirtualClock) {
    const signal = new SignalSemaphore(2, { clock });
    return {
      call: (options: object) => signal.acquire(options),
      satisfy: () => signal.release(),
      state: () => ({ available: signal.available, waiting: signal.waiting }),
      giveBack: () => signal.release(),
    };
  },
};

for (const { title, run } of abortCases(subject)) it(title, run);

it("C03: is released by whoever has something to tell, who never acquired", async () => {
  const ready = new SignalSemaphore(1);
  const log: string[] = [];
  const consumer = ready.acquire().then(() => log.push("heard"));
  await turn();
  log.push("told");
  expect(ready.release()).toBe(true);
  await consumer;
  expect(log).toEqual(["told", "heard"]);
});

it("remembers a release that came before anybody waited", async () => {
  const ready = new SignalSemaphore(1);
  ready.release();
  expect(ready.available).toBe(1);
  await ready.acquire();
  expect([ready.available, ready.tryAcquire()]).toEqual([0, false]);
});

it("C04: with a limit of one it is a flag: raised twice it wakes one", async () => {
  const flag = new SignalSemaphore(1);
  expect([flag.release(), flag.release()]).toEqual([true, false]);
  await flag.acquire();
  const second = flag.acquire();
  expect(flag.waiting).toBe(1);
  flag.release();
  await second;
});

it("C004: no release raises the count above the limit", async () => {
  const sem = new SignalSemaphore(1, { initial: 1 });
  for (let times = 0; times < 3; times += 1) expect(sem.release()).toBe(false);
  expect([sem.available, sem.stats().surplus]).toEqual([1, 3]);
  expect([sem.tryAcquire(), sem.tryAcquire(), sem.tryAcquire()]).toEqual([true, false, false]);
});

it("starts with nothing to be had, or with as much as it is told", async () => {
  expect(new SignalSemaphore(3).available).toBe(0);
  expect(new SignalSemaphore(3, { initial: 2 }).available).toBe(2);
  expect(() => new SignalSemaphore(3, { initial: 4 })).toThrow("initial must be at most the limit of 3, got 4");
  expect(() => new SignalSemaphore(3, { initial: -1 })).toThrow(RangeError);
  expect(() => new SignalSemaphore(0)).toThrow(RangeError);
});

it("gives several releases to those who wait first, and keeps what there is room for", async () => {
  const sem = new SignalSemaphore(2);
  const waits = [sem.acquire(), sem.acquire({ weight: 2 })];
  expect(sem.release(4)).toBe(true);
  await Promise.all(waits);
  expect(sem.available).toBe(1);
  expect([sem.release(2), sem.available]).toEqual([false, 2]);
  expect([sem.tryAcquire({ weight: 2 }), sem.available, sem.tryAcquire()]).toEqual([true, 0, false]);
  for (const bad of [0, 1.5, "1"]) expect(() => sem.release(bad as number)).toThrow(/^count must be /);
});

it("wakes in the order of arrival, and lets nobody overtake who waits for several", async () => {
  const sem = new SignalSemaphore(3);
  const order: number[] = [];
  const waits = [3, 1, 1].map((weight, id) => sem.acquire({ weight }).then(() => order.push(id)));
  sem.release();
  sem.release();
  await turn();
  expect([order, sem.available, sem.tryAcquire()]).toEqual([[], 2, false]);
  sem.release(3);
  await Promise.all(waits);
  expect(order).toEqual([0, 1, 2]);
});

it("uses nothing up by an abort or a timeout", async () => {
  const clock = new VirtualClock();
  const sem = new SignalSemaphore(2, { clock });
  const call = new AbortController();
  const refused = Promise.allSettled([sem.acquire({ signal: call.signal }), sem.acquire({ timeoutMs: 10 })]);
  call.abort();
  await clock.advance(10);
  expect((await refused).map((each) => each.status)).toEqual(["rejected", "rejected"]);
  await expect(sem.acquire({ timeoutMs: 0 })).rejects.toThrow(TimeoutError);
  sem.release();
  expect([sem.available, sem.waiting]).toEqual([1, 0]);
});

it("drops nothing of a release in the midst of an abort that somebody behind the aborting waits for", async () => {
  const sem = new SignalSemaphore(1);
  const call = new AbortController();
  const released: boolean[] = [];
  call.signal.addEventListener("abort", () => released.push(sem.release(2), sem.release(2)));
  const aborted = [sem.acquire({ signal: call.signal }), sem.acquire({ signal: call.signal })];
  const outcomes = Promise.allSettled(aborted);
  const waits = [sem.acquire(), sem.acquire(), sem.acquire()];
  call.abort("gave up");
  await Promise.all(waits);
  expect(await outcomes).toMatchObject([{ reason: "gave up" }, { reason: "gave up" }]);
  expect([released, sem.available, sem.stats().surplus]).toEqual([[true, true], 1, 0]);
});

it("turns away waiters and newcomers when it closes, and who finds too many waiting", async () => {
  const sem = new SignalSemaphore(1, { maxWaiting: 1 });
  const waiter = sem.acquire();
  await expect(sem.acquire()).rejects.toThrow(QueueFullError);
  sem.close();
  await expect(waiter).rejects.toThrow(ClosedError);
  await expect(sem.acquire()).rejects.toThrow(ClosedError);
  expect([sem.release(), sem.tryAcquire(), sem.closed]).toEqual([true, false, true]);
});

it("tells what it is doing by name", async () => {
  const sem = new SignalSemaphore(2, { name: "ready" });
  sem.release(3);
  await sem.acquire();
  const rest = { waiting: 0, oldestWaitMs: 0, granted: 1, rejected: 0, timedOut: 0, aborted: 0, closed: false };
  expect(sem.stats()).toEqual({ limit: 2, available: 1, surplus: 1, ...rest });
  const entry = namedEntries().find(({ name }) => name === "ready");
  expect([entry?.kind, entry?.target.deref()]).toEqual(["signal-semaphore", sem]);
});

it("never has more than its limit, and nobody waits while there is something, under any plan", () => {
  const step = fc.constantFrom("acquire", "two", "try", "release", "three", "abort");
  const plans = fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (plan) => {
    const sem = new SignalSemaphore(3);
    let [come, heard] = [0, 0];
    let call = new AbortController();
    for (const each of plan) {
      const weight = each === "two" ? 2 : 1;
      const hear = (): unknown => (heard += weight);
      if (each === "acquire" || each === "two") sem.acquire({ weight, signal: call.signal }).then(hear, () => {});
      else if (each === "try" && sem.tryAcquire()) heard += 1;
      else if (each === "release" && sem.release()) come += 1;
      else if (each === "three" && sem.release(3)) come += 3;
      else if (each === "three") come = Number.NaN; // some of them were dropped
      else if (each === "abort") call = (call.abort(), new AbortController());
      await turn();
      expect(sem.available).toBeLessThanOrEqual(3);
      expect(sem.waiting === 0 || sem.available < 2).toBe(true);
      if (!Number.isNaN(come)) expect(sem.available).toBe(come - heard);
    }
  });
  return fc.assert(plans, { numRuns: 200 });
});
