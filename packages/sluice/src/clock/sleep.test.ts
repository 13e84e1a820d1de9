import { expect, it } from "vitest";
import { type AbortSubject, abortCases } from "../testing/abort-suite.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { sleep } from "./sleep.ts";
import { systemClock } from "./system.ts";

const subject: AbortSubject = {
  name: "sleep",
  lacks: { timeoutMs: "its own duration is its limit" },
  open: (clock) => ({
    call: ({ signal }) => sleep(100, { signal, clock }),
    satisfy: () => clock.advance(100),
    state: () => ({}),
  }),
};
for (const { title, run } of abortCases(subject)) it(title, run);

const DAY_MS = 86_400_000;

it.each([0, 0.5, 250, 2 ** 31, 90 * DAY_MS])("lasts %d ms, neither more nor less", async (ms) => {
  const clock = new VirtualClock();
  let woke = false;
  const asleep = sleep(ms, { clock }).then(() => (woke = true));
  if (ms > 0) await clock.advance(ms - 0.25);
  expect(woke).toBe(false);
  await clock.advance(0.25);
  expect(await asleep).toBe(true);
  expect(clock.timers).toBe(0);
});

it("wakes in the order of time, then of call", async () => {
  const clock = new VirtualClock();
  const woken: number[] = [];
  for (const ms of [30, 10, 20, 10]) void sleep(ms, { clock }).then(() => woken.push(ms));
  await clock.advance(30);
  expect(woken).toEqual([10, 10, 20, 30]);
});

it("sets no timer for Infinity, which only the signal ends", async () => {
  const clock = new VirtualClock();
  const call = new AbortController();
  const asleep = sleep(Infinity, { clock, signal: call.signal });
  expect(clock.timers).toBe(0);
  call.abort("enough");
  await expect(asleep).rejects.toBe("enough");
});

it("rejects for what is no duration", async () => {
  for (const bad of [-1, Number.NaN, "5"]) await expect(sleep(bad as number)).rejects.toThrow(/^ms must be/);
});

it("rejects when the clock throws", async () => {
  const clock = {
    ...systemClock,
    setTimer(): never {
      throw new Error("broken");
    },
  };
  await expect(sleep(1, { clock })).rejects.toThrow("broken");
});
