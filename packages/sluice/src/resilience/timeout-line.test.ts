import { setImmediate as turn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, it, vi } from "vitest";
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { LimitedCall, TimeoutLine } from "./timeout-line.ts";

class Call extends LimitedCall {
  readonly #onLimit: () => void;
  endedWith: unknown = undefined;

  constructor(onLimit: () => void = () => {}) {
    super();
    this.#onLimit = onLimit;
  }

  override onLimit(): void {
    this.#onLimit();
  }

  override onAbort(reason: unknown): void {
    this.endedWith = reason;
  }
}

it("keeps one timer for all, and ends each at its own limit, whoever leaves when", () => {
  const step = fc.record({ waitMs: fc.integer({ min: 0, max: 15 }), leaves: fc.nat({ max: 12 }) });
  const plans = fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (plan) => {
    const clock = new VirtualClock();
    const line = new TimeoutLine(20, clock);
    const calls: { readonly call: Call; readonly beganAt: number; endedAt: number; left: boolean }[] = [];
    for (const { waitMs, leaves } of plan) {
      const one = {
        call: new Call(() => (one.endedAt = clock.now())),
        beganAt: clock.now(),
        endedAt: Infinity,
        left: false,
      };
      line.join(one.call);
      calls.push(one);
      await clock.advance(waitMs);
      const other = calls.at(-1 - leaves);
      if (other !== undefined && other.endedAt === Infinity) {
        other.left = true;
        line.leave(other.call);
        line.leave(other.call);
      }
      const alive = calls.filter(({ endedAt, left }) => endedAt === Infinity && !left);
      expect(clock.timers).toBe(alive.length > 0 ? 1 : 0); // I2
    }
    await clock.advance(100);
    for (const { beganAt, endedAt, left } of calls) expect(endedAt).toBe(left ? Infinity : beganAt + 20);
    expect(clock.timers).toBe(0);
  });
  return fc.assert(plans, { numRuns: 500 });
});

it("ends who is due though a clock rounds, and nobody who is not though its timer is early", async () => {
  const inner = new VirtualClock();
  let early = 1e-9;
  const rounding: Clock = {
    now: () => inner.now(),
    wallNow: () => inner.wallNow(),
    track: (work) => work,
    setTimer: (delayMs, task) => inner.setTimer(Math.max(0, delayMs - early), task),
  };
  const line = new TimeoutLine(20, rounding);
  const ended: string[] = [];
  line.join(new Call(() => ended.push("first")));
  await inner.advance(5);
  line.join(new Call(() => ended.push("second")));
  await inner.advance(15);
  expect([ended, inner.timers]).toEqual([["first"], 1]);
  early = 0;
  await inner.advance(5);
  expect([ended, inner.timers]).toEqual([["first", "second"], 0]);
});

it("serves who joins while others are ended, and is left with one timer", async () => {
  const clock = new VirtualClock();
  const line = new TimeoutLine(20, clock);
  const ended: number[] = [];
  const again = (): void => {
    ended.push(clock.now());
    if (ended.length < 3) line.join(new Call(again));
  };
  line.join(new Call(again));
  await clock.advance(20);
  expect(clock.timers).toBe(1);
  await clock.advance(100);
  expect([ended, clock.timers]).toEqual([[20, 40, 60], 0]);
});

it("has nobody in line whom the clock would set no timer for", () => {
  const clock = new VirtualClock();
  const line = new TimeoutLine(20, clock);
  vi.spyOn(clock, "setTimer").mockImplementationOnce(() => {
    throw new Error("broken");
  });
  const call = new Call();
  expect(() => line.join(call)).toThrow("broken");
  expect(call.line).toBeUndefined();
  line.join(call);
  expect(clock.timers).toBe(1);
});

it.each(["now", "setTimer"] as const)("ends all in line though the clock's %s has thrown at a limit", async (name) => {
  const clock = new VirtualClock();
  const line = new TimeoutLine(20, clock);
  const [first, second, third] = [new Call(() => (first.endedWith = "limit")), new Call(), new Call()];
  line.join(first);
  await clock.advance(10);
  line.join(second);
  const seen: unknown[] = [];
  const others = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException").on("uncaughtException", (error) => seen.push(error));
  const broken = new Error("broken");
  const onTimer = (): unknown =>
    vi.spyOn(clock, name).mockImplementationOnce(() => {
      throw broken;
    });
  clock.setTimer(10, { onTimer });
  await clock.advance(10);
  process.removeAllListeners("uncaughtException");
  for (const other of others) process.on("uncaughtException", other);
  expect([first.endedWith, second.endedWith]).toEqual([name === "now" ? broken : "limit", broken]);
  line.join(third);
  expect([clock.timers, seen]).toEqual([1, [broken]]);
});

it("sets one native timer for calls that follow one another through async functions, and clears it after the last", async () => {
  const line = new TimeoutLine(30_000, systemClock);
  const set = vi.spyOn(globalThis, "setTimeout");
  const clear = vi.spyOn(globalThis, "clearTimeout");
  try {
    const run = async (): Promise<void> => {
      const call = new Call();
      line.join(call);
      await Promise.resolve();
      line.leave(call);
    };
    const wrapped = async (): Promise<void> => await run();
    for (let i = 0; i < 100; i += 1) await wrapped();
    expect([set.mock.calls.length, clear.mock.calls.length]).toEqual([1, 0]);
    await turn();
    expect([set.mock.calls.length, clear.mock.calls.length]).toEqual([1, 1]);
    await wrapped();
    expect(set.mock.calls.length).toBe(2);
    await turn();
    expect(clear.mock.calls.length).toBe(2);
  } finally {
    set.mockRestore();
    clear.mockRestore();
  }
});
