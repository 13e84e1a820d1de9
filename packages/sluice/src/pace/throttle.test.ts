import * as fc from "fast-check";
import { expect, it } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { throttle, type ThrottleOptions } from "./throttle.ts";

interface Made {
  readonly clock: VirtualClock;
  /** `time(argument)` of each run. */
  readonly runs: string[];
  readonly throttled: ReturnType<typeof throttle<unknown, [number], string>>;
}

function make(waitMs: number, options: ThrottleOptions = {}): Made {
  const clock = new VirtualClock();
  const runs: string[] = [];
  const run = (value: number): string => {
    runs.push(`${clock.now()}(${value})`);
    return `ran ${value}`;
  };
  return { clock, runs, throttled: throttle(run, waitMs, { clock, ...options }) };
}

/** Calls at these times, each with its time, and what was run up to the end. */
async function runsOf(waitMs: number, calls: readonly number[], options: ThrottleOptions = {}): Promise<string> {
  const { clock, runs, throttled } = make(waitMs, options);
  for (const at of calls) {
    await clock.advance(at - clock.now());
    throttled(at);
  }
  await clock.runToIdle();
  return runs.join(" ");
}

const calls = [0, 20, 40, 60, 80, 120, 140, 400];

it.each([
  ["J61, S07, S08: at both edges", {}, "0(0) 100(80) 200(140) 400(400)"],
  ["J62, S08: at the first edge", { trailing: false }, "0(0) 120(120) 400(400)"],
  ["J63, S08: at the last edge", { leading: false }, "100(80) 200(140) 500(400)"],
  ["J59: at no edge", { leading: false, trailing: false }, ""],
])("%s, it runs at most once in the wait, and the last call of it at its end", async (_, options, runs) => {
  expect(await runsOf(100, calls, options)).toBe(runs);
});

it.each([
  ["a call alone, once, at once", [7], {}, "7(7)"],
  ["a call alone, once, at the end if only that edge was asked for", [7], { leading: false }, "107(7)"],
  [
    "what comes just after the run at the last edge not before another wait is over",
    [0, 99, 101],
    {},
    "0(0) 100(99) 200(101)",
  ],
  ["what comes when the wait is just over at once", [0, 100, 200], {}, "0(0) 100(100) 200(200)"],
  ["none of those that it drops later on", [0, 10, 90, 250], { trailing: false }, "0(0) 250(250)"],
])("J59: runs %s", async (_, at, options, runs) => {
  expect(await runsOf(100, at, options)).toBe(runs);
});

it("keeps a steady rhythm while calls go on without end", async () => {
  const steady = Array.from({ length: 51 }, (_, index) => index * 10);
  expect(await runsOf(100, steady)).toBe("0(0) 100(90) 200(190) 300(290) 400(390) 500(490) 600(500)");
});

it("C130: runs a call after the loop was blocked for longer than the wait at once, in the same turn", () => {
  const { clock, runs, throttled } = make(100, { trailing: false });
  throttled(1);
  clock.stall(300);
  throttled(2);
  expect(runs).toEqual(["0(1)", "300(2)"]);
});

it.each([[{}], [{ leading: false }]])(
  "runs the last call of a wait that is over once, by the next call, though the timer is late, with %o",
  async (options) => {
    const { clock, runs, throttled } = make(100, options);
    throttled(1);
    throttled(2);
    clock.stall(300);
    throttled(3);
    throttled(4);
    await clock.advance(99);
    expect(runs.at(-1)).toBe("300(3)");
    await clock.advance(1);
    expect(runs.at(-1)).toBe("400(4)");
  },
);

it("keeps this and the arguments of the call that is run", async () => {
  const clock = new VirtualClock();
  const seen: unknown[] = [];
  const bar = {
    name: "bar",
    show: throttle(
      function (this: { readonly name: string }, done: number, of: number) {
        seen.push([this.name, done, of]);
      },
      100,
      { clock },
    ),
  };
  for (const done of [1, 2, 3]) bar.show(done, 3);
  await clock.runToIdle();
  expect(seen).toEqual([
    ["bar", 1, 3],
    ["bar", 3, 3],
  ]);
});

it("J59: drops what waits when it is cancelled, and runs it when it is flushed, which begins another wait", async () => {
  const { clock, runs, throttled } = make(100);
  throttled(1);
  throttled(2);
  throttled.cancel();
  expect([throttled.pending(), clock.timers]).toEqual([false, 0]);
  throttled(3);
  await clock.advance(50);
  throttled(4);
  expect([throttled.flush(), throttled.flush()]).toEqual(["ran 4", undefined]);
  await clock.advance(99);
  throttled(5);
  await clock.runToIdle();
  expect(runs).toEqual(["0(1)", "0(3)", "50(4)", "150(5)"]);
});

it("schedules a call that the function makes itself", async () => {
  const clock = new VirtualClock();
  const runs: string[] = [];
  const again = throttle(
    (left: number): void => {
      runs.push(`${clock.now()}(${left})`);
      if (left > 0) again(left - 1);
    },
    100,
    { clock },
  );
  again(2);
  expect(runs).toEqual(["0(2)"]);
  await clock.runToIdle();
  expect(runs).toEqual(["0(2)", "100(1)", "200(0)"]);
});

it("goes on at its rhythm though the function throws", async () => {
  const clock = new VirtualClock();
  const down = new Error("down");
  const runs: string[] = [];
  const throttled = throttle(
    (value: number) => {
      runs.push(`${clock.now()}(${value})`);
      throw down;
    },
    100,
    { clock },
  );
  expect(() => throttled(1)).toThrow(down);
  throttled(2);
  await expect(clock.advance(100)).rejects.toBe(down);
  throttled(3);
  await expect(clock.advance(100)).rejects.toBe(down);
  expect([runs, throttled.pending(), clock.timers]).toEqual([["0(1)", "100(2)", "200(3)"], false, 0]);
});

it("J64: takes no notice of a wall clock that is set back", async () => {
  const { clock, runs, throttled } = make(100);
  throttled(1);
  clock.jumpWall(-3_600_000);
  throttled(2);
  await clock.advance(100);
  expect(runs).toEqual(["0(1)", "100(2)"]);
});

it("refuses bad options", () => {
  for (const bad of [-1, Number.NaN, Infinity]) expect(() => throttle(() => {}, bad)).toThrow(RangeError);
  expect(() => throttle(() => {}, undefined as unknown as number)).toThrow(TypeError);
});

it("runs at most once in any wait, never later than it must, and the last call always, under any plan of calls", () => {
  const options = fc.record({ leading: fc.boolean(), trailing: fc.boolean() });
  const pauses = fc.array(fc.integer({ min: 0, max: 120 }), { minLength: 1, maxLength: 40 });
  const plans = fc.asyncProperty(options, pauses, async ({ leading, trailing }, pauseMs) => {
    let now = 0;
    const at = pauseMs.map((ms) => (now += ms));
    const { clock, runs, throttled } = make(50, { leading, trailing });
    for (const [id, time] of at.entries()) {
      await clock.advance(time - clock.now());
      throttled(id);
    }
    await clock.runToIdle();
    const found = runs.map((run) => run.split("(").map(Number.parseFloat)).map(([time = 0, id = 0]) => ({ time, id }));
    for (const [index, run] of found.entries()) {
      const before = found[index - 1] ?? { time: -Infinity, id: -1 };
      expect(run.time - before.time).toBeGreaterThanOrEqual(50);
      const waited = run.time - (at[before.id + 1] ?? 0); // since the first call that this run was for
      if (trailing) expect(waited).toBeLessThanOrEqual(50);
      if (leading && trailing) expect(run.time === at[run.id] || run.time - before.time === 50).toBe(true);
      if (!leading) expect(run.time - (at[run.id] ?? 0)).toBeGreaterThan(0);
    }
    if (trailing) expect(found.at(-1)?.id).toBe(at.length - 1);
    if (leading) expect(found[0]).toEqual({ time: at[0], id: 0 });
    if (!leading && !trailing) expect(found).toEqual([]);
  });
  return fc.assert(plans, { numRuns: 500 });
});
