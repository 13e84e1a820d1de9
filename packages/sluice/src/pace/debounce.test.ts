import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import * as fc from "fast-check";
import { expect, it, vi } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { debounce, type DebounceOptions } from "./debounce.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

interface Made {
  readonly clock: VirtualClock;
  /** `time(argument)` of each run. */
  readonly runs: string[];
  readonly debounced: ReturnType<typeof debounce<unknown, [number], string>>;
}

function make(waitMs: number, options: DebounceOptions = {}): Made {
  const clock = new VirtualClock();
  const runs: string[] = [];
  const run = (value: number): string => {
    runs.push(`${clock.now()}(${value})`);
    return `ran ${value}`;
  };
  return { clock, runs, debounced: debounce(run, waitMs, { clock, ...options }) };
}

/** Calls at these times, each with its time, and what was run up to the end. */
async function runsOf(waitMs: number, calls: readonly number[], options: DebounceOptions = {}): Promise<string> {
  const { clock, runs, debounced } = make(waitMs, options);
  for (const at of calls) {
    await clock.advance(at - clock.now());
    debounced(at);
  }
  await clock.runToIdle();
  return runs.join(" ");
}

const burst = [0, 20, 40, 60, 80, 120, 140, 400];

it.each([
  ["the last call of each burst", {}, "240(140) 500(400)"],
  ["the first", { leading: true, trailing: false }, "0(0) 400(400)"],
  ["the first and the last, which is one if the burst is", { leading: true }, "0(0) 240(140) 400(400)"],
  ["none, if neither is asked for", { trailing: false }, ""],
])("J58, S06: runs %s", async (_, options, runs) => {
  expect(await runsOf(100, burst, options)).toBe(runs);
});

const steady = Array.from({ length: 11 }, (_, index) => index * 50); // 0, 50, … 500

it.each([
  ["as long as they go on, none is run", {}, "600(500)"],
  ["one is run whenever they have gone on so long", { maxWaitMs: 200 }, "200(150) 400(350) 600(500)"],
  ["counted from the run at the first edge too", { maxWaitMs: 200, leading: true }, "0(0) 200(150) 400(350) 600(500)"],
  ["at the first edge alone", { maxWaitMs: 200, leading: true, trailing: false }, "0(0) 200(200) 400(400)"],
])("with calls every 50 ms and a maxWaitMs of 200, %s", async (_, options, runs) => {
  expect(await runsOf(100, steady, options)).toBe(runs);
});

it("begins a new burst with a call just after the last edge, which is at once if the first edge is asked for", async () => {
  expect(await runsOf(100, [0, 50, 150, 151], { leading: true })).toBe("0(0) 150(50) 150(150) 251(151)");
});

it("C128: runs a call long after a burst at its last edge only, if only that was asked for", async () => {
  const calls = [...Array.from({ length: 31 }, (_, index) => index * 100), 10_000];
  expect(await runsOf(1_000, calls, { maxWaitMs: 2_000 })).toBe("2000(1900) 4000(3000) 11000(10000)");
});

it("C130: runs a call after the loop was blocked for longer than the wait at once, in the same turn", () => {
  const { clock, runs, debounced } = make(100, { leading: true, trailing: false });
  debounced(1);
  clock.stall(300);
  debounced(2);
  expect(runs).toEqual(["0(1)", "300(2)"]);
});

it("takes a call after the loop was blocked for the last of a burst that goes on, if only that edge was asked for", async () => {
  const { clock, runs, debounced } = make(100);
  debounced(1);
  clock.stall(300);
  debounced(2);
  await clock.advance(99);
  expect(runs).toEqual([]);
  await clock.advance(1);
  expect(runs).toEqual(["400(2)"]);
});

it("runs within a loop that is never left, once maxWaitMs have passed", () => {
  const { clock, runs, debounced } = make(32, { maxWaitMs: 128 });
  for (let call = 0; call < 40; call += 1) {
    debounced(call);
    clock.stall(10);
  }
  expect(runs).toEqual(["130(13)", "260(26)", "390(39)"]);
});

it("J58: keeps this and the arguments of the last call, however many they are", async () => {
  const clock = new VirtualClock();
  const seen: unknown[] = [];
  const cursor = {
    name: "cursor",
    move: debounce(
      function (this: { readonly name: string }, ...path: number[]) {
        seen.push([this.name, ...path]);
      },
      100,
      { clock },
    ),
  };
  cursor.move(1, 2, 3);
  cursor.move.call({ name: "other" }, 4);
  await clock.runToIdle();
  cursor.move();
  await clock.runToIdle();
  expect(seen).toEqual([["other", 4], ["cursor"]]);
});

it("J58: returns what the last run returned, and undefined before the first", async () => {
  const { clock, debounced } = make(100);
  expect(debounced(1)).toBeUndefined();
  await clock.advance(100);
  expect(debounced(2)).toBe("ran 1");
  expect(make(100, { leading: true }).debounced(3)).toBe("ran 3");
});

it("J58: schedules a call that the function makes itself, whichever edge runs it", async () => {
  const clock = new VirtualClock();
  const runs: string[] = [];
  const again = debounce(
    (left: number): void => {
      runs.push(`${clock.now()}(${left})`);
      if (left > 0) again(left - 1);
    },
    100,
    { clock, leading: true },
  );
  again(2);
  expect(runs).toEqual(["0(2)"]);
  await clock.runToIdle();
  expect(runs).toEqual(["0(2)", "100(1)", "200(0)"]);
});

it("J58: drops the call that waits when it is cancelled, leaves no timer, and begins anew", async () => {
  const { clock, runs, debounced } = make(100, { leading: true });
  debounced(1);
  debounced(2);
  debounced.cancel();
  expect([debounced.pending(), clock.timers, debounced.flush()]).toEqual([false, 0, undefined]);
  debounced(3);
  await clock.runToIdle();
  expect(runs).toEqual(["0(1)", "0(3)"]);
});

it("J58: runs the call that waits when it is flushed, once, and returns its result; nothing if none waits", async () => {
  const { clock, runs, debounced } = make(100);
  expect(debounced.flush()).toBeUndefined();
  debounced(1);
  debounced(2);
  expect([debounced.pending(), debounced.flush(), debounced.pending(), debounced.flush()]).toEqual([
    true,
    "ran 2",
    false,
    undefined,
  ]);
  expect(clock.timers).toBe(0);
  await clock.advance(1_000);
  expect(runs).toEqual(["0(2)"]);
});

it("has cleared its state when the function throws: the error is thrown where it was run, and the next call counts", async () => {
  const clock = new VirtualClock();
  const down = new Error("down");
  let runs = 0;
  const debounced = debounce(
    () => {
      runs += 1;
      throw down;
    },
    100,
    { clock, leading: true },
  );
  expect(() => debounced()).toThrow(down);
  debounced();
  await expect(clock.advance(100)).rejects.toBe(down);
  expect([runs, debounced.pending(), clock.timers]).toEqual([2, false, 0]);
  expect(() => debounced()).toThrow(down);
  debounced();
  expect(() => debounced.flush()).toThrow(down);
  expect([runs, debounced.pending()]).toEqual([4, false]);
});

it("has one timer for a burst, which is set anew only when it ends too early", async () => {
  const { clock, debounced } = make(100);
  let set = 0;
  const setTimer = clock.setTimer.bind(clock);
  clock.setTimer = (...args) => {
    set += 1;
    return setTimer(...args);
  };
  for (let call = 0; call < 1_000; call += 1) debounced(call);
  expect([set, clock.timers]).toEqual([1, 1]);
  await clock.advance(90);
  debounced(0);
  await clock.runToIdle();
  expect(set).toBe(2);
});

it("sets no timer while nothing waits", () => {
  const { clock, debounced } = make(100, { leading: true });
  debounced(1);
  expect(clock.timers).toBe(0);
});

it("J64: takes no notice of a wall clock that is set, either way", async () => {
  const { clock, runs, debounced } = make(100);
  debounced(1);
  clock.jumpWall(-3_600_000);
  await clock.advance(50);
  debounced(2);
  clock.jumpWall(7_200_000);
  debounced(3);
  await clock.runToIdle();
  expect(runs).toEqual(["150(3)"]);
});

it("runs nothing once its signal has aborted, listens to it only while a call waits, and then leaves no timer", async () => {
  const life = new AbortController();
  const listeners = (): number => getEventListeners(life.signal, "abort").length;
  const { clock, runs, debounced } = make(100, { signal: life.signal, leading: true });
  debounced(1);
  expect(listeners()).toBe(0);
  debounced(2);
  debounced(3);
  expect(listeners()).toBe(1);
  await clock.advance(100);
  expect(listeners()).toBe(0);
  debounced(4);
  debounced(5);
  life.abort();
  expect([clock.timers, listeners(), debounced.pending(), debounced.flush(), debounced(6)]).toEqual([
    0,
    0,
    false,
    undefined,
    "ran 4",
  ]);
  await clock.runToIdle();
  expect([runs, clock.timers, listeners()]).toEqual([["0(1)", "100(3)", "100(4)"], 0, 0]);
});

it("runs nothing for who flushes when they hear of the abort, though they hear of it first", () => {
  const life = new AbortController();
  life.signal.addEventListener("abort", () => debounced.flush());
  const { runs, debounced } = make(100, { signal: life.signal });
  debounced(1);
  life.abort();
  expect(runs).toEqual([]);
});

it("is flushed by nobody within a run: the call that the function made waits on", async () => {
  const clock = new VirtualClock();
  const runs: string[] = [];
  const again = debounce(
    (left: number): void => {
      runs.push(`begin ${left}`);
      if (left > 0) again(left - 1);
      expect([again.flush(), again.pending()]).toEqual([undefined, left > 0]);
      runs.push(`end ${left} at ${clock.now()}`);
    },
    100,
    { clock },
  );
  again(1);
  again.flush();
  await clock.runToIdle();
  expect(runs).toEqual(["begin 1", "end 1 at 0", "begin 0", "end 0 at 100"]);
});

it("keeps nothing of a call that was run or dropped", async () => {
  const kept: WeakRef<object>[] = [];
  const clock = new VirtualClock();
  const edges = debounce(ignore, 100, { clock, leading: true });
  const leading = debounce(ignore, 100, { clock, leading: true, trailing: false });
  const call = (debounced: (value: object) => void): void => {
    const value = {};
    kept.push(new WeakRef(value));
    debounced(value);
  };
  for (const debounced of [edges, edges, leading, leading]) call(debounced);
  await clock.runToIdle();
  await turn(); // up to here the references may hold
  collectGarbage();
  expect(kept.map((ref) => ref.deref())).toEqual([undefined, undefined, undefined, undefined]);
  expect([edges.pending(), leading.pending()]).toEqual([false, false]);
});

it("D08: one made for each call delays every one of them; one for all drops all but the last", async () => {
  const clock = new VirtualClock();
  const asked: string[] = [];
  const ask = (text: string): void => void asked.push(text);
  for (const text of ["l", "ll", "llm"]) debounce(ask, 300, { clock })(text);
  await clock.runToIdle();
  const search = debounce(ask, 300, { clock });
  for (const text of ["l", "ll", "llm"]) search(text);
  await clock.runToIdle();
  expect(asked).toEqual(["l", "ll", "llm", "llm"]);
});

it("runs later calls though the clock threw when its timer was due, and keeps no listener", async () => {
  const clock = new VirtualClock();
  const { signal } = new AbortController();
  const ran: number[] = [];
  const save = debounce((id: number) => ran.push(id), 50, { clock, signal });
  save(1);
  await clock.advance(20);
  save(2);
  const setTimer = vi.spyOn(clock, "setTimer").mockImplementation(() => {
    throw new Error("no timers left");
  });
  await expect(clock.advance(30)).rejects.toThrow("no timers left");
  expect([save.pending(), getEventListeners(signal, "abort").length]).toEqual([false, 0]);
  setTimer.mockRestore();
  save(3);
  await clock.advance(50);
  expect(ran).toEqual([3]);
});

it("refuses bad options", () => {
  for (const bad of [-1, Number.NaN, Infinity]) expect(() => debounce(() => {}, bad)).toThrow(RangeError);
  expect(() => debounce(() => {}, 100, { maxWaitMs: 99 })).toThrow(RangeError);
  expect(() => debounce(() => {}, "100" as unknown as number)).toThrow(TypeError);
  expect(() => debounce(undefined as unknown as () => void, 100)).toThrow("fn must be a function, got undefined");
  for (const signal of [{}, null] as unknown as AbortSignal[])
    expect(() => debounce(() => {}, 100, { signal })).toThrow(TypeError);
});

it("takes an option that is undefined for one that is left out", async () => {
  const options = { leading: undefined, trailing: undefined, maxWaitMs: undefined, signal: undefined };
  expect(await runsOf(100, burst, options)).toBe("240(140) 500(400)");
});

it("runs as it says under any plan of calls, pauses, cancels and flushes", () => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.constant("call" as const) },
    { weight: 4, arbitrary: fc.integer({ min: 1, max: 120 }) },
    { weight: 1, arbitrary: fc.constantFrom("flush" as const, "cancel" as const) },
  );
  const options = fc.record({
    leading: fc.boolean(),
    trailing: fc.boolean(),
    maxWaitMs: fc.constantFrom(50, 70, 120, Infinity),
  });
  const plans = fc.asyncProperty(options, fc.array(step, { maxLength: 40 }), play);
  return fc.assert(plans, { numRuns: 1_000 });
});

function ignore(value: object): unknown {
  return typeof value;
}

const WAIT_MS = 50;

/** The same, told millisecond by millisecond. */
async function play(
  options: { readonly leading: boolean; readonly trailing: boolean; readonly maxWaitMs: number },
  plan: readonly ("call" | "flush" | "cancel" | number)[],
): Promise<void> {
  const { leading, trailing, maxWaitMs } = options;
  const { clock, runs, debounced } = make(WAIT_MS, options);
  const expected: string[] = [];
  let [now, calledAt, since] = [0, Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY];
  let waiting: number | undefined;
  const run = (value: number): void => {
    expected.push(`${now}(${value})`);
    [since, waiting] = [now, undefined];
  };
  const isOver = (): boolean => now - calledAt >= WAIT_MS || (since > -Infinity && now - since >= maxWaitMs);
  for (const [id, step] of plan.entries()) {
    if (typeof step === "number") {
      for (const end = now + step; now < end;) {
        now += 1;
        if (waiting !== undefined && isOver()) run(waiting);
      }
      await clock.advance(step);
    } else if (step === "call") {
      const isEdge = isOver();
      calledAt = now;
      if (isEdge && leading) run(id);
      else {
        if (isEdge) since = now;
        if (trailing) waiting = id;
      }
      debounced(id);
    } else {
      if (step === "flush" && waiting !== undefined) run(waiting);
      if (step === "cancel") [calledAt, since, waiting] = [-Infinity, -Infinity, undefined];
      debounced[step]();
    }
    expect([runs, debounced.pending(), clock.timers]).toEqual([
      expected,
      waiting !== undefined,
      waiting === undefined ? 0 : 1,
    ]);
  }
}
