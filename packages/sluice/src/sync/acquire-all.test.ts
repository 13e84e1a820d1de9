import { setImmediate as turn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { ClosedError, TimeoutError } from "../errors.ts";
import { abortCases } from "../testing/abort-suite.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { acquireAll, type AcquireAllItem, tryAcquireAll } from "./acquire-all.ts";
import { Mutex } from "./mutex.ts";
import type { Permit } from "./permit.ts";
import { Semaphore } from "./semaphore.ts";

const subject = {
  name: "acquireAll",
  open(clock: VirtualClock) {
    const [first, second, last] = [new Semaphore(1, { clock }), new Mutex({ clock }), new Semaphore(2, { clock })];
    const held: (Permit | undefined)[] = [second.tryAcquire()];
    return {
      async call(options: object) {
        const permit = await acquireAll([first, second, { from: last, weight: 2 }], { ...options, clock });
        held.push(permit);
        return permit;
      },
      satisfy: () => held.shift()?.release(),
      state: () => ({
        free: first.available + last.available + Number(!second.locked),
        waiting: first.waiting + second.waiting + last.waiting,
      }),
      giveBack: (permit: unknown) => (permit as Permit).release(),
    };
  },
};

for (const { title, run } of abortCases(subject)) it(title, run);

it("takes all at once where all are free, and gives all back by one permit, once", async () => {
  const [sem, mutex] = [new Semaphore(3), new Mutex()];
  const permit = await acquireAll([{ from: sem, weight: 2 }, mutex]);
  expect([sem.available, mutex.locked, permit.isHeld]).toEqual([1, true, true]);
  permit.release();
  permit.release();
  expect([sem.available, mutex.locked, permit.isHeld]).toEqual([3, false, false]);
  {
    using _ = await acquireAll([sem, mutex]);
    expect([sem.available, mutex.locked]).toEqual([2, true]);
  }
  expect([sem.available, mutex.locked]).toEqual([3, false]);
  expect((await acquireAll([])).isHeld).toBe(false);
});

it("F10.2: permits taken in opposite orders end in deadlock; asked for all at once they do not", async () => {
  const clock = new VirtualClock();
  const [a, b] = [new Semaphore(1, { clock }), new Semaphore(1, { clock })];
  const stuck = Promise.all([oneByOne(a, b), oneByOne(b, a)]);
  while (a.waiting + b.waiting < 2) await turn();
  await clock.advance(60_000);
  expect(await stuck).toEqual(["deadlock", "deadlock"]);
  expect(await Promise.all([atOnce(a, b), atOnce(b, a), atOnce(a, b)])).toEqual(["done", "done", "done"]);
});

it("F11.5: sets that cross each other, each asked for in an order of its own, all come to an end", () => {
  const sets = fc.array(fc.uniqueArray(fc.integer({ min: 0, max: 4 }), { minLength: 1 }), {
    minLength: 2,
    maxLength: 12,
  });
  const plans = fc.asyncProperty(sets, async (plan) => {
    const forks = Array.from({ length: 5 }, () => new Mutex());
    let eating = new Set<number>();
    const dine = async (set: readonly number[]): Promise<void> => {
      using _ = await acquireAll(set.map((fork) => forks[fork] as Mutex));
      expect(set.some((fork) => eating.has(fork))).toBe(false);
      eating = new Set([...eating, ...set]);
      await turn();
      eating = new Set([...eating].filter((fork) => !set.includes(fork)));
    };
    await Promise.all(plan.map(dine));
    expect(forks.some(({ locked }) => locked)).toBe(false);
  });
  return fc.assert(plans, { numRuns: 100 });
});

it("adds up what is listed twice, and refuses at once what can never be had", async () => {
  const [sem, mutex] = [new Semaphore(3), new Mutex()];
  const permit = await acquireAll([sem, { from: sem, weight: 2 }]);
  expect(sem.available).toBe(0);
  permit.release();
  using _ = await mutex.acquire();
  const refused: AcquireAllItem[][] = [
    [mutex, sem, sem, sem, sem],
    [mutex, mutex],
    [mutex, { from: sem, weight: 0 }],
  ];
  for (const items of refused) {
    await expect(acquireAll(items)).rejects.toThrow(/^weight must be an integer from 1 to the limit of /);
    expect(() => tryAcquireAll(items)).toThrow(RangeError);
  }
  expect([sem.available, mutex.waiting]).toEqual([3, 0]);
});

it("takes all now or nothing", () => {
  const [sem, mutex] = [new Semaphore(2), new Mutex()];
  const all = tryAcquireAll([sem, mutex]);
  expect([sem.available, mutex.locked, tryAcquireAll([sem, mutex]), sem.available]).toEqual([1, true, undefined, 1]);
  all?.release();
  expect([sem.available, mutex.locked]).toEqual([2, false]);
});

it("gives back in the turn of the abort what it holds while it waits for the next", async () => {
  const [first, second] = [new Mutex(), new Mutex()];
  (await acquireAll([first, second])).release(); // from now on, this is their order
  const guard = await second.acquire();
  const call = new AbortController();
  const all = acquireAll([second, first], { signal: call.signal });
  expect([first.locked, second.waiting]).toEqual([true, 1]);
  call.abort(new TimeoutError(1));
  expect([first.locked, second.waiting]).toEqual([false, 0]);
  await expect(all).rejects.toBe(call.signal.reason);
  guard.release();
});

it("gives back what comes in the turn of the abort", async () => {
  const [first, second] = [new Mutex(), new Mutex()];
  const guard = await first.acquire();
  const call = new AbortController();
  const all = acquireAll([first, second], { signal: call.signal });
  guard.release();
  call.abort(new Error("same turn"));
  await expect(all).rejects.toBe(call.signal.reason);
  expect([first.locked, second.locked]).toEqual([false, false]);
});

it("limits the wait for all of them together", async () => {
  const clock = new VirtualClock();
  const [first, second] = [new Mutex({ clock }), new Mutex({ clock })];
  const guards = [await first.acquire(), await second.acquire()];
  const all = acquireAll([first, second], { timeoutMs: 100, clock });
  const refused = expect(all).rejects.toMatchObject({ code: "TIMEOUT", timeoutMs: 100 });
  await clock.advance(60);
  guards[0]?.release();
  await clock.advance(39);
  expect([first.locked, second.waiting]).toEqual([true, 1]);
  await clock.advance(1);
  await refused;
  expect([first.locked, second.waiting, clock.timers]).toEqual([false, 0, 0]);
  guards[1]?.release();
});

it("gives back what it holds when one of them closes, turns it away or fails", async () => {
  const [first, second] = [new Mutex(), new Semaphore(1, { maxWaiting: 1 })];
  await second.acquire();
  const closed = acquireAll([first, second]);
  const full = acquireAll([second, first]).catch((error: { code: string }) => error.code); // waits for the first
  second.close();
  await expect(closed).rejects.toThrow(ClosedError);
  expect([await full, first.locked]).toEqual(["CLOSED", false]);
  const broken = { acquire: fail, tryAcquire: fail };
  await expect(acquireAll([first, broken])).rejects.toThrow("broken");
  expect(() => tryAcquireAll([first, broken])).toThrow("broken");
  expect(first.locked).toBe(false);
});

it("hands its priority on", async () => {
  const [sem, mutex] = [new Semaphore(1), new Mutex()];
  const guard = await mutex.acquire();
  const order: string[] = [];
  const take = (name: string, priority: number): Promise<unknown> =>
    acquireAll([mutex, sem], { priority }).then((permit) => (order.push(name), permit.release()));
  const all = Promise.all([take("low", 0), take("high", 1)]);
  guard.release();
  await all;
  expect(order).toEqual(["high", "low"]);
  await expect(acquireAll([sem], { priority: Number.NaN })).rejects.toThrow("priority must be finite, got NaN");
});

it("settles in as many turns whether it waited or not", async () => {
  const mutex = new Mutex();
  const fast = await turnsUntil(acquireAll([mutex]).then((permit) => permit.release()));
  const guard = await mutex.acquire();
  const waits = acquireAll([mutex]).then((permit) => permit.release());
  guard.release();
  expect(await turnsUntil(waits)).toBe(fast);
});

it("takes whatever gives permits as a semaphore does", async () => {
  const taken: unknown[] = [];
  const permit = (): Permit => ({ isHeld: true, release: () => void taken.push("back"), [Symbol.dispose]: () => {} });
  const remote = {
    permits: 5,
    tryAcquire: () => undefined,
    acquire: (options: unknown) => (taken.push(options), Promise.resolve(permit())),
  };
  const all = await acquireAll([{ from: remote, weight: 4 }]);
  all.release();
  expect(taken).toEqual([{ weight: 4, timeoutMs: Infinity, signal: undefined, priority: undefined }, "back"]);
});

async function oneByOne(first: Semaphore, second: Semaphore): Promise<string> {
  using _ = await first.acquire();
  await turn();
  return await second.run(() => "done", { timeoutMs: 60_000 }).catch(() => "deadlock");
}

async function atOnce(...items: Semaphore[]): Promise<string> {
  using _ = await acquireAll(items);
  await turn();
  return "done";
}

function fail(): never {
  throw new Error("broken");
}

async function turnsUntil(promise: Promise<unknown>): Promise<number> {
  let turns = 0;
  const settled = promise.then(() => turns);
  const tick = (): void => {
    turns += 1;
    if (turns < 20) queueMicrotask(tick);
  };
  queueMicrotask(tick);
  return settled;
}
