import { setImmediate as turn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { TimeoutError } from "../errors.ts";
import { namedEntries } from "../internal/names.ts";
import { abortCases } from "../testing/abort-suite.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Latch } from "./latch.ts";

const cases = abortCases({
  name: "Latch.wait",
  open(clock) {
    const latch = new Latch(1, { clock });
    return {
      call: (options) => latch.wait(options),
      satisfy: () => latch.countDown(),
      state: () => ({ remaining: latch.remaining, waiting: latch.waiting }),
    };
  },
});
for (const { title, run } of cases) it(title, run);

it("lets nobody through before the last arrival, and then all in the order they came", async () => {
  const latch = new Latch(2);
  const through: string[] = [];
  for (const name of ["a", "b", "c"]) void latch.wait().then(() => through.push(name));
  latch.countDown();
  await turn();
  expect([through, latch.remaining, latch.isOpen]).toEqual([[], 1, false]);
  latch.countDown();
  await turn();
  expect([through, latch.remaining, latch.isOpen, latch.waiting]).toEqual([["a", "b", "c"], 0, true, 0]);
});

it("lets through at once whoever comes when it is open, in as many turns as one who waited", async () => {
  const [open, shut] = [new Latch(0), new Latch(1)];
  const fast = await turnsUntil(open.wait());
  const waiter = shut.wait();
  shut.countDown();
  expect(await turnsUntil(waiter)).toBe(fast);
  await open.wait({ timeoutMs: 0 });
  expect(open.stats().passed).toBe(2);
});

it("counts several arrivals at once, and no arrival changes what is open already", () => {
  const latch = new Latch(5);
  latch.countDown(3);
  expect(latch.remaining).toBe(2);
  latch.countDown(4);
  expect([latch.remaining, latch.stats().late]).toEqual([0, 2]);
  latch.countDown();
  expect([latch.remaining, latch.isOpen, latch.stats().late]).toEqual([0, true, 3]);
});

it("opens by hand for good, and what arrives after that is late", async () => {
  const latch = new Latch(3);
  const waiter = latch.wait();
  latch.countDown();
  latch.open();
  latch.open();
  await waiter;
  latch.countDown();
  expect(latch.stats()).toMatchObject({ count: 3, remaining: 0, isOpen: true, late: 1 });
});

it("F11.4: a latch used for a second round lets everybody pass at once, and counts it as late and passed", async () => {
  const latch = new Latch(2);
  const round = async (): Promise<number> => {
    const done = latch.wait();
    const stillMissing = latch.remaining;
    latch.countDown();
    latch.countDown();
    await done;
    return stillMissing;
  };
  expect([await round(), latch.stats()]).toMatchObject([2, { late: 0, passed: 0 }]);
  expect([await round(), latch.stats()]).toMatchObject([0, { late: 2, passed: 1 }]); // nobody had arrived
});

it("lets nobody through who is about to hear of its abort, though it opens in the midst of that", async () => {
  const latch = new Latch(1);
  const call = new AbortController();
  call.signal.addEventListener("abort", () => latch.countDown());
  const outcomes = Promise.allSettled([latch.wait({ signal: call.signal }), latch.wait()]);
  call.abort("gone");
  expect(await outcomes).toMatchObject([{ status: "rejected", reason: "gone" }, { status: "fulfilled" }]);
  expect(latch.waiting).toBe(0);
});

it("refuses a count that is negative or no whole number, and arrivals that are none, and counts nothing", () => {
  for (const count of [-1, 1.5, Number.NaN, Infinity]) expect(() => new Latch(count)).toThrow(RangeError);
  expect(() => new Latch("3" as unknown as number)).toThrow("count must be a number, got string");
  const latch = new Latch(2);
  for (const n of [0, -1, 0.5]) expect(() => latch.countDown(n)).toThrow("n must be an integer >= 1");
  expect(latch.remaining).toBe(2);
});

it("times out by its clock, and leaves the others to wait", async () => {
  const clock = new VirtualClock();
  const latch = new Latch(1, { clock });
  const hasty = expect(latch.wait({ timeoutMs: 50 })).rejects.toThrow(TimeoutError);
  const patient = latch.wait();
  await clock.advance(50);
  await hasty;
  expect([latch.waiting, clock.timers, latch.remaining]).toEqual([1, 0, 1]);
  latch.countDown();
  await patient;
});

it("lets a wait with a limit through when it opens in time, and leaves no timer", async () => {
  const clock = new VirtualClock();
  const latch = new Latch(1, { clock });
  const wait = latch.wait({ timeoutMs: 50 });
  await clock.advance(49);
  latch.countDown();
  await wait;
  expect([latch.waiting, clock.timers, latch.stats().timedOut]).toEqual([0, 0, 0]);
});

it("tells by name what is missing, who waits and since when", async () => {
  const clock = new VirtualClock();
  const latch = new Latch(3, { name: "warm-up", clock });
  const call = new AbortController();
  const waits = [latch.wait(), latch.wait({ timeoutMs: 10 }), latch.wait({ signal: call.signal })];
  const settled = Promise.allSettled(waits);
  latch.countDown();
  await clock.advance(30);
  call.abort();
  expect(latch.stats()).toEqual({
    count: 3,
    remaining: 2,
    isOpen: false,
    waiting: 1,
    oldestWaitMs: 30,
    late: 0,
    passed: 0,
    timedOut: 1,
    aborted: 1,
  });
  latch.open();
  await settled;
  const entry = namedEntries().find(({ name }) => name === "warm-up");
  expect([entry?.kind, entry?.target.deref()]).toEqual(["latch", latch]);
});

it("lets all through exactly when as many have arrived as it counts, whatever arrives when", () => {
  const step = fc.oneof(fc.integer({ min: 1, max: 3 }), fc.constant("wait" as const));
  const plans = fc.asyncProperty(fc.nat({ max: 6 }), fc.array(step, { maxLength: 20 }), async (count, plan) => {
    const latch = new Latch(count);
    let [arrived, asked, through] = [0, 0, 0];
    for (const one of plan) {
      if (one === "wait") void (asked++, latch.wait().then(() => through++));
      else latch.countDown(one);
      arrived += one === "wait" ? 0 : one;
      await turn();
      expect([through, latch.waiting]).toEqual(arrived >= count ? [asked, 0] : [0, asked]);
      expect([latch.remaining, latch.stats().late]).toEqual([
        Math.max(0, count - arrived),
        Math.max(0, arrived - count),
      ]);
    }
  });
  return fc.assert(plans, { numRuns: 300 });
});

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
