import { expect, it } from "vitest";
import { DeadlineError } from "../errors.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Deadline } from "./deadline.ts";
import { checkWithin, deadlineWithin } from "./within.ts";

it("is the deadline, or what the function says at that moment, or none", () => {
  using deadline = Deadline.after(100, { clock: new VirtualClock() });
  let now: Deadline | undefined;
  const asked = { within: () => now };
  expect([deadlineWithin({}), deadlineWithin(asked), deadlineWithin({ within: deadline })]).toEqual([
    undefined,
    undefined,
    deadline,
  ]);
  now = deadline;
  expect(deadlineWithin(asked)).toBe(deadline);
});

it("throws what a deadline that is over ended with, and DeadlineError for too little time", async () => {
  const clock = new VirtualClock();
  using within = Deadline.after(100, { clock });
  expect(deadlineWithin({ within, neededMs: 100 })).toBe(within);
  await clock.advance(1);
  expect(() => deadlineWithin({ within, neededMs: 100 })).toThrow(DeadlineError);
  await clock.advance(99);
  expect(() => deadlineWithin({ within })).toThrow("timed out after 100 ms");
  using gone = Deadline.after(100, { clock, signal: AbortSignal.abort(new Error("gone")) });
  expect(() => deadlineWithin({ within: gone })).toThrow("gone");
});

it("checks what it is given, and keeps it", () => {
  const within = Deadline.after(100, { clock: new VirtualClock() });
  expect(checkWithin({ within, neededMs: 5 })).toEqual({ within, neededMs: 5 });
  expect(checkWithin({})).toEqual({ within: undefined, neededMs: 0 });
  for (const neededMs of [-1, Infinity, Number.NaN]) expect(() => checkWithin({ neededMs })).toThrow(RangeError);
  for (const bad of [5, null, {}]) expect(() => checkWithin({ within: bad as unknown as Deadline })).toThrow(TypeError);
});
