import { AsyncLocalStorage } from "node:async_hooks";
import { getEventListeners } from "node:events";
import { afterEach, expect, it } from "vitest";
import { namedEntries } from "../internal/names.ts";
import { abortCases } from "../testing/abort-suite.ts";
import { turn } from "../testing/turn.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { type Schedule, schedule } from "./schedule.ts";
import type { ScheduleContext, ScheduleOptions, ScheduleTiming } from "./schedule-options.ts";

const [SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS] = [1_000, 60_000, 3_600_000, 86_400_000];
const START_AT = Date.UTC(2026, 10, 29);

/** What it runs, at which instant of the wall clock: `runMs` each. */
function play(
  timing: ScheduleTiming,
  options: ScheduleOptions & { readonly runMs?: () => number; readonly clock?: VirtualClock } = {},
): { plan: Schedule; clock: VirtualClock; runs: (ScheduleContext & { at: number })[]; mostAtOnce: () => number } {
  const { runMs = () => 0, clock = new VirtualClock({ wallStartAt: START_AT }), ...others } = options;
  const runs: (ScheduleContext & { at: number })[] = [];
  let [running, most] = [0, 0];
  const task = async (context: ScheduleContext): Promise<void> => {
    runs.push({ ...context, at: clock.wallNow() });
    running += 1;
    most = Math.max(most, running);
    const ms = runMs();
    if (ms > 0) await new Promise<void>((resolve) => void clock.setTimer(ms, { onTimer: resolve }));
    running -= 1;
  };
  return { plan: schedule(timing, task, { ...others, clock }), clock, runs, mostAtOnce: () => most };
}

const secondsOf = (runs: readonly { readonly at: number }[]): number[] =>
  runs.map(({ at }) => (at - START_AT) / SECOND_MS);

/** Each multiple of `ms` since 1970. */
const each = (ms: number): { next(after: number): number } => ({ next: (after) => (Math.floor(after / ms) + 1) * ms });

for (const { title, run } of [
  ...abortCases({
    name: "schedule",
    lacks: { timeoutMs: "it ends by itself, or is told to" },
    open(clock) {
      return {
        async call({ signal }) {
          let ran = false;
          await schedule({ afterMs: 1_000 }, () => (ran = true), { signal, clock }).drain();
          if (!ran) throw signal?.reason;
        },
        satisfy: () => clock.advance(1_000),
        state: () => ({}),
      };
    },
  }),
  ...abortCases({
    name: "Schedule.drain",
    open(clock) {
      const plan = schedule({ everyMs: 1_000 }, () => {}, { clock });
      plan.pause(); // which leaves no timer
      return {
        call: (options) => plan.drain(options),
        satisfy: () => plan[Symbol.dispose](),
        state: () => ({}),
      };
    },
  }),
])
  it(title, run);

it("runs once, after so long, and has ended then", async () => {
  const { plan, clock, runs } = play({ afterMs: 90 * DAY_MS });
  expect([plan.nextAt, plan.ended]).toEqual([START_AT + 90 * DAY_MS, false]);
  await clock.advance(90 * DAY_MS - 1);
  expect(runs).toEqual([]);
  await clock.advance(1);
  await plan.drain();
  expect([secondsOf(runs), plan.nextAt, plan.ended, clock.timers]).toEqual([[90 * 86_400], undefined, true, 0]);
});

it("runs at a fixed rate, whatever a run takes, the first after one period or when it is told", async () => {
  const { clock, runs } = play({ everyMs: 1_000 }, { runMs: () => 400 });
  const { runs: early } = play({ everyMs: 1_000, firstAfterMs: 0 }, { clock, runMs: () => 999 });
  await clock.advance(3_999);
  expect([secondsOf(runs), secondsOf(early)]).toEqual([
    [1, 2, 3],
    [0, 1, 2, 3],
  ]);
  expect(runs.map(({ dueAt, missed }) => [dueAt - START_AT, missed])).toEqual([
    [1_000, 0],
    [2_000, 0],
    [3_000, 0],
  ]);
});

it("waits so long after the end of each run with a fixed delay, and never overlaps", async () => {
  const { plan, clock, runs, mostAtOnce } = play({ delayMs: 1_000, firstAfterMs: 0 }, { runMs: () => 2_500 });
  await clock.advance(1);
  expect(plan.nextAt).toBeUndefined(); // it hangs on the end of the run
  await clock.advance(9_999);
  expect([secondsOf(runs), mostAtOnce()]).toEqual([[0, 3.5, 7], 1]);
});

it("C137: runs every half hour of a local day of 25 hours, and every second across the change", async () => {
  const fromAt = Date.UTC(2024, 3, 6, 13); // 7 April 2024, 00:00 in Melbourne
  const clock = new VirtualClock({ wallStartAt: fromAt - 1 });
  const { runs } = play(each(30 * MINUTE_MS), { clock });
  await clock.advance(25 * HOUR_MS);
  const gaps = runs.map(({ at }, index) => at - (runs[index - 1]?.at ?? at));
  expect([runs.length, Math.max(...gaps)]).toEqual([50, 30 * MINUTE_MS]);
  const changeAt = Date.UTC(2024, 3, 6, 16);
  const other = new VirtualClock({ wallStartAt: changeAt - MINUTE_MS });
  const { runs: bySecond } = play({ everyMs: SECOND_MS }, { clock: other });
  await other.advance(2 * MINUTE_MS);
  expect(bySecond).toHaveLength(120);
});

it.each<[string, (after: number) => number]>([
  ["the same instant", (after) => after],
  ["an earlier one", (after) => after - 1],
  ["NaN", () => Number.NaN],
  ["the epoch", () => 0],
])("C139: refuses a calendar whose search would never end, since its next is %s", async (_, next) => {
  expect(() => play({ next })).toThrow(/^next\(\d+\) must be a later instant or undefined, got/);
  const errors: unknown[] = [];
  const later = { next: (after: number) => (after === START_AT ? after + 5 : next(after)) };
  const { plan, clock, runs } = play(later, { onError: (error) => errors.push(error) });
  await clock.advance(DAY_MS);
  expect(errors).toEqual([expect.objectContaining({ name: "RangeError" })]);
  expect([runs.length, plan.ended, clock.timers]).toEqual([0, true, 0]);
});

it("C139: ends when its calendar does, and when the calendar fails", async () => {
  const three = { next: (after: number) => (after < START_AT + 3_000 ? after + 1_000 : undefined) };
  const { plan, clock, runs } = play(three);
  await clock.advance(DAY_MS);
  expect([secondsOf(runs), plan.nextAt, plan.ended, clock.timers]).toEqual([[1, 2, 3], undefined, true, 0]);
  const { plan: none } = play({ next: () => undefined });
  await none.drain();
  expect(none.ended).toBe(true);
  const failure = new Error("no such zone");
  const errors: unknown[] = [];
  const fails = { next: (after: number) => (after === START_AT ? after + 1 : fail(failure)) };
  const { plan: broken, clock: other } = play(fails, { onError: (error) => errors.push(error) });
  await other.advance(10);
  expect([errors, broken.ended]).toEqual([[failure], true]);
});

it.each([
  ["a fixed rate", { everyMs: SECOND_MS }],
  ["a calendar", each(SECOND_MS)],
])("C140: makes up for 110 s asleep with one run, then goes on by the second: %s", async (_, timing) => {
  for (const missed of ["skip", "once"] as const) {
    const { plan, clock, runs } = play(timing, { missed });
    await clock.advance(2 * SECOND_MS);
    clock.stall(110.5 * SECOND_MS);
    await clock.advance(0);
    await clock.advance(2.5 * SECOND_MS);
    expect(secondsOf(runs)).toEqual([1, 2, 112.5, 113, 114, 115]);
    expect(runs[2]).toMatchObject({ dueAt: START_AT + 112 * SECOND_MS, missed: 109 });
    expect(plan.stats()).toMatchObject({ missed: 109, started: 6 });
  }
});

it.each([
  ["a fixed rate", { everyMs: SECOND_MS }],
  ["a calendar", each(SECOND_MS)],
])("C140: runs all that were missed within the window if it is to, one after the other: %s", async (_, timing) => {
  const options = { missed: "all", windowMs: 5 * SECOND_MS, graceMs: 2 * SECOND_MS } as const;
  const { plan, clock, runs, mostAtOnce } = play(timing, { ...options, runMs: () => 10 });
  await clock.advance(SECOND_MS);
  clock.stall(9.25 * SECOND_MS);
  await clock.advance(1.75 * SECOND_MS);
  expect(runs.map(({ dueAt }) => (dueAt - START_AT) / SECOND_MS)).toEqual([1, 6, 7, 8, 9, 10, 11, 12]);
  expect(secondsOf(runs).slice(0, 3)).toEqual([1, 10.25, 10.26]);
  expect([runs[1]?.missed, runs[2]?.missed, mostAtOnce(), plan.stats().missed]).toEqual([4, 0, 1, 4]);
});

it.each([
  ["skip", [1, 5, 9, 13, 17]],
  ["queue", [1, 4.5, 8, 11.5, 15, 18.5]],
] as const)(
  "C142: never overlaps runs that are longer than the period, and has no backlog: %s",
  async (overlap, starts) => {
    let runMs = 3_500;
    const { plan, clock, runs, mostAtOnce } = play({ everyMs: SECOND_MS }, { overlap, runMs: () => runMs });
    for (let second = 0; second < 20; second += 1) {
      await clock.advance(SECOND_MS);
      expect(plan.stats().pending).toBeLessThanOrEqual(overlap === "queue" ? 1 : 0);
    }
    expect([secondsOf(runs), mostAtOnce()]).toEqual([starts, 1]);
    runMs = 0;
    await clock.advance(10 * SECOND_MS);
    const after = secondsOf(runs).slice(starts.length);
    expect(new Set(after.map(Math.floor)).size).toBeGreaterThanOrEqual(after.length - 1); // no burst
    expect(after.at(-1)).toBe(30);
    expect(runs.length + plan.stats().skipped).toBe(30);
  },
);

it("C142: lets as many overlap as it is told, and leaves out what is more", async () => {
  const { plan, clock, mostAtOnce } = play(
    { everyMs: SECOND_MS },
    { overlap: "allow", maxRunning: 3, runMs: () => 3_500 },
  );
  await clock.advance(20 * SECOND_MS);
  expect([mostAtOnce(), plan.stats()]).toEqual([3, expect.objectContaining({ started: 15, skipped: 5 })]);
});

it.each([
  ["a fixed rate", { everyMs: MINUTE_MS }],
  ["a calendar", each(MINUTE_MS)],
])("C144: runs once for each minute though the loop is blocked around each: %s", async (_, timing) => {
  const { plan, clock, runs } = play(timing);
  for (let minute = 1; minute <= 10; minute += 1) {
    await clock.advance(minute * MINUTE_MS - 500 - clock.now());
    clock.stall(1_500);
    await clock.advance(0);
  }
  expect(runs.map(({ dueAt }) => (dueAt - START_AT) / MINUTE_MS)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  expect(plan.stats()).toMatchObject({ missed: 0, skipped: 0 });
});

it("C146: asks its calendar once for each run, from the last on, and adds nothing of its own to the months", async () => {
  const asked: number[] = [];
  const firsts = {
    next(after: number): number {
      asked.push(after);
      const date = new Date(after);
      return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1);
    },
  };
  const clock = new VirtualClock({ wallStartAt: Date.UTC(2027, 0, 31, 12) });
  const { runs } = play(firsts, { clock });
  await clock.advance(59 * DAY_MS);
  expect(runs.map(({ at }) => new Date(at).toISOString().slice(0, 10))).toEqual(["2027-02-01", "2027-03-01"]);
  expect(asked).toEqual([Date.UTC(2027, 0, 31, 12), ...runs.map(({ dueAt }) => dueAt)]);
});

const daily = { next: (after: number) => each(DAY_MS).next(after - 4 * HOUR_MS) + 4 * HOUR_MS };
const day = (days: number, hours: number): number => START_AT + (days - 1) * DAY_MS + hours * HOUR_MS;

it("C147: makes up once for what was missed while the process was down", async () => {
  const clock = new VirtualClock({ wallStartAt: day(4, 9) });
  const { plan, runs } = play(daily, { clock, missed: "once", sinceAt: day(1, 15) });
  await clock.advance(0);
  expect(runs).toMatchObject([{ at: day(4, 9), dueAt: day(4, 4), missed: 2 }]);
  expect(plan.nextAt).toBe(day(5, 4));
});

it("C147: makes up once for what was missed while it was paused", async () => {
  const clock = new VirtualClock({ wallStartAt: day(1, 3) });
  const { plan, runs } = play(daily, { clock, missed: "once" });
  await clock.advance(12 * HOUR_MS);
  plan.pause();
  expect([plan.nextAt, clock.timers, plan.stats().paused]).toEqual([undefined, 0, true]);
  await clock.advance(day(4, 9) - day(1, 15));
  expect(runs).toHaveLength(1);
  plan.resume();
  plan.resume();
  await clock.advance(0);
  expect(runs.map(({ at }) => at)).toEqual([day(1, 4), day(4, 9)]);
  expect(plan.nextAt).toBe(day(5, 4));
});

it("C147: leaves out what is more than graceMs late, if it is to skip, however it was missed", async () => {
  const clock = new VirtualClock({ wallStartAt: day(4, 9) });
  const { plan, runs } = play(daily, { clock, sinceAt: day(1, 15) });
  await clock.advance(0);
  expect([runs, plan.stats().missed, plan.nextAt]).toEqual([[], 3, day(5, 4)]);
  const { runs: rate, plan: other } = play({ everyMs: DAY_MS }, { clock });
  clock.stall(DAY_MS + HOUR_MS);
  await clock.advance(0);
  expect([rate, other.stats().missed]).toEqual([[], 1]);
  expect((other.nextAt ?? 0) - clock.wallNow()).toBe(DAY_MS - HOUR_MS);
});

it("finds the last of millions that were missed in a few steps, and counts no more than 1,000 of them", async () => {
  let asked = 0;
  const seconds = { next: (after: number) => ((asked += 1), each(SECOND_MS).next(after)) };
  const { clock, runs } = play(seconds, { missed: "once" });
  clock.stall(365 * DAY_MS + 300);
  await clock.advance(0);
  expect(runs).toMatchObject([{ dueAt: START_AT + 365 * DAY_MS, missed: 1_000 }]);
  expect(asked).toBeLessThan(1_100);
  await clock.advance(700);
  expect(runs).toHaveLength(2);
  const { runs: all, clock: other } = play(seconds, {
    missed: "all",
    windowMs: 3_000,
    graceMs: 0,
    clock: new VirtualClock(),
  });
  other.stall(365 * DAY_MS);
  await other.advance(0);
  expect(all.map(({ dueAt, missed }) => [365 * DAY_MS - dueAt, missed])).toEqual([
    [3_000, 1_000],
    [2_000, 0],
    [1_000, 0],
    [0, 0],
  ]);
  expect(asked).toBeLessThan(2_200);
});

it("notices within a minute that the wall clock was set forward", async () => {
  const { clock, runs } = play(each(DAY_MS), { missed: "once" });
  await clock.advance(HOUR_MS);
  clock.jumpWall(30 * HOUR_MS);
  await clock.advance(MINUTE_MS);
  expect(runs).toMatchObject([{ dueAt: START_AT + DAY_MS, missed: 0 }]);
});

it("starts its calendar anew when the wall clock was set back by more than graceMs, and waits out what is less", async () => {
  const { plan, clock, runs } = play(each(HOUR_MS), { graceMs: 10 * MINUTE_MS });
  await clock.advance(HOUR_MS);
  clock.jumpWall(-5 * MINUTE_MS);
  await clock.advance(10 * MINUTE_MS);
  expect([runs.length, plan.nextAt]).toEqual([1, START_AT + 2 * HOUR_MS]); // and not the same hour again
  clock.jumpWall(-5 * DAY_MS);
  await clock.advance(MINUTE_MS);
  expect(plan.nextAt).toBe(START_AT + 2 * HOUR_MS - 5 * DAY_MS);
});

it("leaves a fixed rate alone whatever the wall clock does", async () => {
  const { clock, runs } = play({ everyMs: SECOND_MS });
  for (const byMs of [-DAY_MS, 400 * DAY_MS, -5]) {
    clock.jumpWall(byMs);
    await clock.advance(SECOND_MS);
  }
  expect(runs).toHaveLength(3);
});

it("goes on after a run that fails, and tells onError of each failure", async () => {
  const errors: unknown[] = [];
  const clock = new VirtualClock();
  const failures = [new Error("synchronous"), new Error("asynchronous"), undefined];
  const task = (): unknown => {
    const next = failures.shift();
    if (next?.message === "synchronous") throw next;
    return next === undefined ? undefined : Promise.reject(next);
  };
  const [first, second] = failures;
  const plan = schedule({ everyMs: 1_000 }, task, { clock, onError: (error) => errors.push(error) });
  await clock.advance(3_000);
  expect(errors).toEqual([first, second]);
  expect(plan.stats()).toMatchObject({ started: 3, failed: 2, running: 0, ended: false });
});

const unhandled: unknown[] = [];
const onUnhandled = (error: unknown): unknown => unhandled.push(error);
const others = process.listeners("unhandledRejection");

function catchUnhandled(): void {
  process.removeAllListeners("unhandledRejection").on("unhandledRejection", onUnhandled);
}

afterEach(() => {
  process.removeListener("unhandledRejection", onUnhandled);
  unhandled.length = 0;
  if (process.listenerCount("unhandledRejection") === 0)
    for (const other of others) process.on("unhandledRejection", other);
});

it("lets a failure without a sink surface as an unhandled rejection, as one of the sink, and goes on", async () => {
  catchUnhandled();
  const clock = new VirtualClock();
  const [own, sinks] = [new Error("own"), new Error("sink's")];
  schedule({ everyMs: 1_000 }, () => fail(own), { clock });
  schedule({ everyMs: 1_000 }, () => fail(own), { clock, onError: () => fail(sinks) });
  await clock.advance(2_000);
  await turn();
  expect(unhandled).toEqual([own, sinks, own, sinks]);
});

it("A10: stops at once, and waits for the run that goes on, but no longer than it is told", async () => {
  const { plan, clock, runs } = play({ everyMs: SECOND_MS }, { overlap: "queue", runMs: () => 5_000 });
  await clock.advance(2_500);
  const hurried = plan.stop({ timeoutMs: 100 }).catch((error: unknown) => error);
  const stopped = plan.stop().then(() => clock.now());
  expect([plan.ended, plan.nextAt, plan.stats().pending]).toEqual([true, undefined, 0]);
  await clock.advance(DAY_MS);
  expect([await hurried, await stopped, runs.length]).toEqual([expect.objectContaining({ code: "TIMEOUT" }), 6_000, 1]);
  expect([clock.timers, runs[0]?.signal.aborted]).toEqual([0, false]);
});

it("aborts the signal of the run that goes on, and takes its rejection for no failure", async () => {
  const clock = new VirtualClock();
  const call = new AbortController();
  const plan = schedule({ everyMs: 1_000 }, untilAborted, { clock, signal: call.signal });
  await clock.advance(1_000);
  expect(getEventListeners(call.signal, "abort").length).toBe(1);
  call.abort(new Error("enough"));
  await plan.drain();
  expect(plan.stats()).toMatchObject({ started: 1, failed: 0, running: 0, ended: true });
  expect([clock.timers, getEventListeners(call.signal, "abort").length]).toEqual([0, 0]);
});

it("ends by disposal, of both kinds, and leaves no timer and no listener", async () => {
  const { signal } = new AbortController();
  const clock = new VirtualClock();
  {
    using _ = schedule({ everyMs: 1 }, () => {}, { clock, signal });
    expect([clock.timers, getEventListeners(signal, "abort").length]).toEqual([1, 1]);
  }
  expect([clock.timers, getEventListeners(signal, "abort").length]).toEqual([0, 0]);
  const end = Promise.withResolvers<void>();
  let isOver = false;
  const block = (async () => {
    await using _ = schedule({ afterMs: 0 }, () => end.promise, { clock });
    await clock.advance(0);
  })().then(() => (isOver = true));
  await turn();
  await turn();
  expect(isOver).toBe(false);
  end.resolve();
  await block;
});

it("starts nothing while it is paused, not even what was pending, and goes on with it after", async () => {
  const { plan, clock, runs } = play({ everyMs: SECOND_MS }, { overlap: "queue", runMs: () => 1_500 });
  await clock.advance(2 * SECOND_MS);
  plan.pause();
  await clock.advance(10 * SECOND_MS);
  expect([secondsOf(runs), plan.stats().pending]).toEqual([[1], 1]);
  plan.resume();
  await clock.advance(0);
  expect([secondsOf(runs), plan.stats()]).toEqual([
    [1, 12],
    expect.objectContaining({ pending: 1, missed: 9, paused: false }),
  ]);
});

it("sets no timer while it is paused, also when a run ends meanwhile", async () => {
  const { plan, clock, runs } = play({ delayMs: 1_000 }, { runMs: () => 500 });
  await clock.advance(1_200);
  plan.pause();
  await clock.advance(DAY_MS);
  expect([runs.length, clock.timers]).toEqual([1, 0]);
  plan.resume();
  await clock.advance(0);
  expect(runs).toHaveLength(2);
});

it.each(["stop", "pause"] as const)(
  "runs no other of what it makes up for once the first has called %s",
  async (end) => {
    const clock = new VirtualClock();
    const late = { missed: "all", graceMs: 0, windowMs: 10_000, overlap: "allow", clock } as const;
    const plan: Schedule = schedule({ everyMs: 1_000 }, () => void plan[end](), late);
    plan.pause();
    await clock.advance(3_500);
    plan.resume();
    await clock.advance(0);
    expect(plan.stats()).toMatchObject({ started: 1, pending: end === "stop" ? 0 : 2 });
    plan.resume(); // one at a time, as each pauses it again
    await clock.advance(0);
    expect(plan.stats()).toMatchObject({ started: end === "stop" ? 1 : 2, pending: end === "stop" ? 0 : 1 });
  },
);

it("runs the last that is pending though no other comes after it", async () => {
  const two = { next: (after: number) => (after < START_AT + 2_000 ? after + 1_000 : undefined) };
  const { plan, clock, runs } = play(two, { overlap: "queue", runMs: () => 5_000 });
  await clock.advance(2_000);
  expect([plan.nextAt, plan.ended]).toEqual([undefined, false]);
  await clock.advance(DAY_MS);
  await plan.drain();
  expect([secondsOf(runs), plan.ended, clock.timers]).toEqual([[1, 6], true, 0]);
});

it("runs in the async context of who scheduled it, also what was pending", async () => {
  const clock = new VirtualClock();
  const context = new AsyncLocalStorage<string>();
  const seen: unknown[] = [];
  const end = Promise.withResolvers<void>();
  const task = (): Promise<void> => (seen.push(context.getStore()), end.promise);
  context.run("mine", () => schedule({ everyMs: 1_000 }, task, { clock, overlap: "queue" }));
  await context.run("another's", () => clock.advance(2_000));
  context.run("a third's", () => end.resolve());
  await clock.advance(1_000);
  expect(seen).toEqual(["mine", "mine", "mine"]);
});

it("keeps going in the background only, if it is to", async () => {
  const { clock, runs } = play({ everyMs: 1_000 }, { background: true });
  await clock.runToIdle();
  expect([clock.now(), clock.timers]).toEqual([0, 1]);
  play({ afterMs: 5_000 }, { clock });
  await clock.runToIdle();
  expect(runs).toHaveLength(5);
});

it("is to be seen by its name", () => {
  const clock = new VirtualClock();
  const plan = schedule({ everyMs: 1_000 }, () => {}, { clock, name: "sweep" });
  expect(namedEntries().find(({ name }) => name === "sweep")).toMatchObject({ kind: "schedule" });
  expect(plan.name).toBe("sweep");
  plan.stop().catch(fail);
});

it.each([
  [{ afterMs: -1 }, {}, "afterMs must be finite and >= 0, got -1"],
  [{ afterMs: Infinity }, {}, "afterMs must be finite and >= 0, got Infinity"],
  [{ everyMs: 0 }, {}, "everyMs must be finite and >= 1, got 0"],
  [{ everyMs: 5, firstAfterMs: -1 }, {}, "firstAfterMs must be finite and >= 0, got -1"],
  [{ delayMs: Number.NaN }, {}, "delayMs must be finite and >= 0, got NaN"],
  [{}, {}, "timing must have afterMs, everyMs, delayMs or next"],
  [{ everyMs: 5 }, { overlap: "both" }, "overlap must be one of skip, queue, allow, got both"],
  [{ everyMs: 5 }, { maxRunning: 0 }, "maxRunning must be an integer >= 1, got 0"],
  [{ everyMs: 5 }, { missed: "most" }, "missed must be one of skip, once, all, got most"],
  [{ everyMs: 5 }, { missed: "all" }, "windowMs must be a number, got undefined"],
  [{ everyMs: 5 }, { missed: "all", windowMs: 5 }, "windowMs must be finite and >= 60000, got 5"],
  [{ everyMs: 5 }, { graceMs: -1 }, "graceMs must be >= 0, got -1"],
  [{ everyMs: 5 }, { sinceAt: Infinity }, "sinceAt must be finite, got Infinity"],
  [{ everyMs: 5 }, { onError: 5 }, "onError must be a function, got number"],
])("refuses %o with %o, and says why", (timing, options, message) => {
  const clock = new VirtualClock();
  const bad = [timing, options] as unknown as [ScheduleTiming, ScheduleOptions];
  expect(() => schedule(bad[0], () => {}, { ...bad[1], clock })).toThrow(message);
  expect(clock.timers).toBe(0);
});

it("refuses what is no task, and takes a bad signal for a reason to start nothing", () => {
  const clock = new VirtualClock();
  expect(() => schedule({ everyMs: 5 }, 5 as unknown as () => void, { clock })).toThrow("task must be a function");
  const signal = {} as AbortSignal;
  expect(() => schedule({ everyMs: 5 }, () => {}, { clock, signal })).toThrow("signal must be an AbortSignal");
  const { signal: good } = new AbortController();
  const name = 5 as unknown as string;
  expect(() => schedule({ everyMs: 5 }, () => {}, { clock, signal: good, name })).toThrow("name must be a string");
  expect(getEventListeners(good, "abort")).toHaveLength(0);
  expect(clock.timers).toBe(0);
});

function untilAborted({ signal }: ScheduleContext): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
}

function fail(error: Error): never {
  throw error;
}
