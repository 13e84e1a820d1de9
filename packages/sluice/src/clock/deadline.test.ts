import { getEventListeners } from "node:events";
import { expect, it, vi } from "vitest";
import { TimeoutError } from "../errors.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import type { Clock } from "./clock.ts";
import { Deadline } from "./deadline.ts";
import { sleep } from "./sleep.ts";

const DAY_MS = 86_400_000;

it("J48: hands down what is left: 3 s of 10 after 7", async () => {
  const clock = new VirtualClock();
  using request = Deadline.after(10_000, { clock });
  await clock.advance(7_000);
  using callee = Deadline.after(10_000, { within: request, clock });
  expect([request.leftMs, callee.leftMs]).toEqual([3_000, 3_000]);
  const { signal } = callee;
  await clock.advance(3_000);
  expect([callee.leftMs, callee.expired, signal.aborted]).toEqual([0, true, true]);
  expect(signal.reason).toBe(request.signal.reason);
  expect(signal.reason).toMatchObject({ code: "TIMEOUT", timeoutMs: 10_000 });
});

it("aborts its signal with a TimeoutError when it comes, and leaves no timer", async () => {
  const clock = new VirtualClock();
  using deadline = Deadline.after(250, { clock });
  const { signal } = deadline;
  await clock.advance(249);
  expect([signal.aborted, deadline.expired, deadline.leftMs]).toEqual([false, false, 1]);
  await clock.advance(1);
  expect([signal.reason, deadline.expired, clock.timers]).toEqual([expect.any(TimeoutError), true, 0]);
});

it("ends whatever waits on its signal", async () => {
  const clock = new VirtualClock();
  using deadline = Deadline.after(50, { clock });
  const asleep = expect(sleep(Infinity, { clock, signal: deadline.signal })).rejects.toThrow(TimeoutError);
  await clock.advance(50);
  await asleep;
});

it("passes a parent's abort on at once, with its reason, and leaves nothing", async () => {
  const clock = new VirtualClock();
  const parent = new AbortController();
  using deadline = Deadline.after(250, { clock, signal: parent.signal });
  const { signal } = deadline;
  parent.abort(new Error("changed my mind"));
  expect(signal.reason).toBe(parent.signal.reason);
  expect([clock.timers, getEventListeners(parent.signal, "abort").length]).toEqual([0, 0]);
});

it("lets a parent's abort win over the deadline of the same turn", async () => {
  const clock = new VirtualClock();
  const parent = new AbortController();
  using deadline = Deadline.after(250, { clock, signal: parent.signal });
  const { signal } = deadline;
  clock.setTimer(250, { onTimer: () => parent.abort("abort") });
  await clock.advance(250);
  expect(signal.reason).toBe("abort");
});

it("has an aborted signal if the parent is aborted already, and if nothing was left when it was asked for", async () => {
  const clock = new VirtualClock();
  using cancelled = Deadline.after(10, { clock, signal: AbortSignal.abort("gone") });
  expect(cancelled.signal.reason).toBe("gone");
  using past = Deadline.after(10, { clock });
  await clock.advance(10);
  expect(past.signal.reason).toMatchObject({ timeoutMs: 10 });
  using none = Deadline.after(0, { clock });
  expect([none.expired, none.signal.aborted, clock.timers]).toEqual([true, true, 0]);
});

it("has neither timer nor listener unless its signal is used, and none after close", async () => {
  const clock = new VirtualClock();
  const parent = new AbortController();
  const outer = Deadline.after(500, { clock });
  const deadline = Deadline.after(250, { clock, signal: parent.signal, within: outer });
  const left = (): number[] => [clock.timers, getEventListeners(parent.signal, "abort").length];
  expect(left()).toEqual([0, 0]);
  const { signal } = deadline;
  expect(left()).toEqual([2, 1]); // the outer one's signal is in use now as well
  expect(getEventListeners(outer.signal, "abort").length).toBe(1);
  deadline.close();
  deadline.close();
  expect(left()).toEqual([1, 0]);
  outer.close();
  parent.abort();
  await clock.advance(500);
  expect([signal.aborted, ...left()]).toEqual([false, 0, 0]);
  expect(getEventListeners(outer.signal, "abort").length).toBe(0);
});

it("does not come any more once closed, be it before its signal is used or in the turn in which it would come", async () => {
  const clock = new VirtualClock();
  const [early, late] = [50, 50].map((ms) => Deadline.after(ms, { clock, signal: new AbortController().signal }));
  early?.close();
  expect([early?.signal.aborted, clock.timers]).toEqual([false, 0]);
  expect(late?.signal.aborted).toBe(false);
  clock.setTimer(50, { onTimer: () => late?.close() });
  await clock.advance(50);
  expect([early?.signal.aborted, late?.signal.aborted, late?.expired]).toEqual([false, false, true]);
});

it("C085: puts one listener on a long-lived parent for 10,000 deadlines, and takes it away with the last", () => {
  const clock = new VirtualClock();
  const { signal } = new AbortController();
  const deadlines = Array.from({ length: 10_000 }, () => Deadline.after(1_000, { clock, signal }));
  for (const deadline of deadlines) void deadline.signal;
  expect(getEventListeners(signal, "abort").length).toBe(1);
  for (const deadline of deadlines) deadline.close();
  expect([getEventListeners(signal, "abort").length, clock.timers]).toEqual([0, 0]);
});

it.each([30 * DAY_MS, 2 ** 31])("C088: means what it says for %d ms", async (ms) => {
  const clock = new VirtualClock();
  using deadline = Deadline.after(ms, { clock });
  const { signal } = deadline;
  await clock.advance(ms - 1);
  expect(signal.aborted).toBe(false);
  await clock.advance(1);
  expect(signal.aborted).toBe(true);
});

it("C088: never comes after Infinity ms, and sets no timer", async () => {
  const clock = new VirtualClock();
  using deadline = Deadline.after(Infinity, { clock });
  const { signal } = deadline;
  expect(clock.timers).toBe(0);
  await clock.advance(400 * DAY_MS);
  expect([signal.aborted, deadline.leftMs]).toEqual([false, Infinity]);
});

it("is never at odds with its signal, though its timer fires early", async () => {
  const inner = new VirtualClock();
  const early: Clock = {
    now: () => inner.now(),
    wallNow: () => inner.wallNow(),
    track: (work) => work,
    setTimer: (delayMs, task) => inner.setTimer(delayMs - 0.7, task),
  };
  using deadline = Deadline.after(50, { clock: early });
  const { signal } = deadline;
  await inner.advance(49.5);
  expect([signal.aborted, deadline.expired, deadline.leftMs]).toEqual([true, true, 0]);
});

it("leaves nothing on a parent when the other's signal throws", () => {
  const { signal } = new AbortController();
  const within = Deadline.after(1_000, { clock: new VirtualClock() });
  within.signal.addEventListener = () => {
    throw new Error("broken");
  };
  const deadline = Deadline.after(50, { clock: new VirtualClock(), signal, within });
  expect(() => deadline.signal).toThrow("broken");
  expect(getEventListeners(signal, "abort").length).toBe(0);
});

it("leaves nothing on the parent when the clock throws", () => {
  const clock = new VirtualClock();
  const { signal } = new AbortController();
  clock.setTimer = () => {
    throw new Error("broken");
  };
  const deadline = Deadline.after(50, { clock, signal });
  expect(() => deadline.signal).toThrow("broken");
  expect(getEventListeners(signal, "abort").length).toBe(0);
});

it("never gives out a signal that won't abort, though the clock threw when it was first asked for", async () => {
  const clock = new VirtualClock();
  const deadline = Deadline.after(50, { clock });
  vi.spyOn(clock, "setTimer").mockImplementationOnce(() => {
    throw new Error("broken");
  });
  expect(() => deadline.signal).toThrow("broken");
  const { signal } = deadline;
  await clock.advance(50);
  expect(signal.reason).toBeInstanceOf(TimeoutError);
});

it("refuses what is no duration or signal", () => {
  for (const bad of [-1, Number.NaN]) expect(() => Deadline.after(bad)).toThrow(RangeError);
  expect(() => Deadline.after("5" as unknown as number)).toThrow(TypeError);
  expect(() => Deadline.after(5, { signal: {} as AbortSignal })).toThrow(TypeError);
  for (const bad of [null, 5, new Date(), AbortSignal.abort()] as unknown as Deadline[])
    expect(() => Deadline.after(5, { within: bad })).toThrow("within must be a Deadline");
});
