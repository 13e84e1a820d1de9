import { AsyncLocalStorage } from "node:async_hooks";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Clock, TimerTask } from "./clock.ts";
import { wheelClock as realClock } from "./wheel-clock.ts";

const DAY_MS = 86_400_000;

interface Native {
  readonly goOff: () => void;
  readonly delayMs: number;
  keepsAlive: boolean;
  ref?(): void;
  unref?(): void;
}

/** The runtime as this file plays it: one native timer after the other, moved by hand. */
let now: number;
let natives: Native[];
let clock: Clock;

beforeEach(async () => {
  [now, natives] = [1_000, []];
  vi.stubGlobal("performance", { now: () => now });
  vi.stubGlobal("setTimeout", (goOff: () => void, delayMs: number) => {
    const native: Native = { goOff, delayMs, keepsAlive: true };
    native.ref = () => void (native.keepsAlive = true);
    native.unref = () => void (native.keepsAlive = false);
    natives.push(native);
    return native;
  });
  vi.stubGlobal("clearTimeout", (native: Native) => void (natives = natives.filter((each) => each !== native)));
  vi.resetModules();
  ({ wheelClock: clock } = await import("./wheel-clock.ts"));
});

afterEach(() => {
  vi.unstubAllGlobals();
});

/** Lets the one native timer go off, `lateMs` after its time. */
function wake(lateMs = 0): void {
  const [native, ...others] = natives.splice(0);
  expect(others).toEqual([]);
  now += (native?.delayMs ?? Number.NaN) + lateMs;
  native?.goOff();
}

/** The delays of the native timers that keep the process alive. */
function keptAlive(): number[] {
  return natives.filter(({ keepsAlive }) => keepsAlive).map(({ delayMs }) => delayMs);
}

function log(): { readonly entries: unknown[]; readonly of: (entry: unknown) => TimerTask } {
  const entries: unknown[] = [];
  return { entries, of: (entry) => ({ onTimer: () => entries.push(entry) }) };
}

it("has one native timer for ten thousand of its own, armed for the earliest, which keeps nothing alive after the last", () => {
  const timers = Array.from({ length: 10_000 }, (_, id) => clock.setTimer(60_000 - id, log().of(id)));
  expect(natives.map(({ delayMs }) => delayMs)).toEqual([60_000 - 9_999]);
  for (const timer of timers) timer.cancel();
  expect(natives.map(({ keepsAlive }) => keepsAlive)).toEqual([false]);
  wake();
  expect(natives).toEqual([]);
});

it("arms nothing anew for timers that come and go, one after the other, each of them awaited", () => {
  const { entries, of } = log();
  clock.setTimer(1_000, of("first")).cancel();
  const [native] = natives;
  for (let turn = 0; turn < 100; turn += 1) {
    now += 5;
    const timer = clock.setTimer(1_000, of(turn));
    expect([natives.length, natives[0] === native, native?.keepsAlive]).toEqual([1, true, true]);
    timer.cancel();
    expect(native?.keepsAlive).toBe(false);
  }
  clock.setTimer(1_000, of("last"));
  now -= 500;
  wake(); // for the first, in vain
  expect([entries, natives.map(({ delayMs, keepsAlive }) => [delayMs, keepsAlive])]).toEqual([[], [[500, true]]]);
  wake();
  expect([entries, natives]).toEqual([["last"], []]);
});

it("clears its native timer with the last where none can be unreferenced, as in browsers", () => {
  const timer = clock.setTimer(10, log().of("never"));
  for (const native of natives) delete native.unref;
  timer.cancel();
  expect(natives).toEqual([]);
});

it("arms its native timer once for all that are set within a millisecond, and takes no delay for 0", () => {
  const { entries, of } = log();
  const first = clock.setTimer(10.2, of("first"));
  const [native] = natives;
  for (const delayMs of [10.6, 10.9]) clock.setTimer(delayMs, of("other"));
  expect(natives).toEqual([native]);
  expect(natives[0]).toBe(native);
  first.cancel();
  for (const none of [Number.NaN, -5]) clock.setTimer(none, of("at once"));
  wake();
  expect(entries).toEqual(["at once", "at once"]);
});

it("fires all that fell due while the machine slept, in the order of their time, then of their setting", () => {
  const { entries, of } = log();
  for (const delayMs of [50, 10, 7_200_000, 30, 10]) clock.setTimer(delayMs, of([delayMs, entries.length]));
  wake(3_600_000);
  expect(entries.map((entry) => (entry as number[])[0])).toEqual([10, 10, 30, 50]);
  expect(natives.map(({ delayMs }) => delayMs)).toEqual([7_200_000 - 3_600_010]);
});

it("A01: sleeps until something is due, and doesn't look in between, however far that is", () => {
  const { entries, of } = log();
  clock.setTimer(2_000_000_000, of("23 days"));
  expect(natives.map(({ delayMs }) => delayMs)).toEqual([2_000_000_000]);
  wake();
  expect([entries, natives]).toEqual([["23 days"], []]);
});

it("waits for the rest when the runtime wakes it early, however often", () => {
  const { entries, of } = log();
  clock.setTimer(9.5, of("fired"));
  wake(-0.7);
  wake(-0.5);
  expect(entries).toEqual([]);
  wake();
  expect([entries, natives]).toEqual([["fired"], []]);
});

it("C088: walks 90 days in legs that setTimeout can count, and never fires after Infinity, which keeps the process alive", () => {
  const { entries, of } = log();
  const forever = clock.setTimer(Infinity, of("never"));
  expect(natives.map(({ delayMs, keepsAlive }) => [delayMs, keepsAlive])).toEqual([[2 ** 31 - 1, true]]);
  wake();
  clock.setTimer(90 * DAY_MS, of("90 days"));
  const from = now;
  for (let legs = 1; entries.length === 0; legs += 1) {
    expect([natives.length, legs < 6]).toEqual([1, true]);
    wake();
  }
  expect(now - from).toBe(90 * DAY_MS);
  forever.cancel();
  expect([entries, keptAlive()]).toEqual([["90 days"], []]);
});

it("leaves its native timer alone when the earliest is cancelled, and looks for the next when it goes off", () => {
  const { entries, of } = log();
  const first = clock.setTimer(10, of("first"));
  clock.setTimer(20, of("second"));
  first.cancel();
  expect(natives.map(({ delayMs }) => delayMs)).toEqual([10]);
  wake();
  expect([entries, natives.map(({ delayMs }) => delayMs)]).toEqual([[], [10]]);
  wake();
  expect([entries, natives]).toEqual([["second"], []]);
});

it("fires the others though a task throws, whose error is for the runtime to report", () => {
  const { entries, of } = log();
  clock.setTimer(10, {
    onTimer: () => {
      throw new Error("broken");
    },
  });
  clock.setTimer(10, of("other"));
  expect(() => wake()).toThrow("broken");
  wake();
  expect([entries, natives]).toEqual([["other"], []]);
});

it("lets a task cancel another that is due with it, and itself in vain", () => {
  const { entries, of } = log();
  clock.setTimer(10, { onTimer: () => (own.cancel(), other.cancel()) });
  const own = clock.setTimer(10, of("own"));
  const other = clock.setTimer(10, of("other"));
  const last = clock.setTimer(10, of("last"));
  wake();
  last.cancel();
  expect([entries, natives]).toEqual([["last"], []]);
});

it("leaves what a task sets with 0 to a later turn, though its clock stands still in between", () => {
  let fired = 0;
  const again: TimerTask = {
    onTimer() {
      fired += 1;
      if (fired < 9) clock.setTimer(0, again);
    },
  };
  clock.setTimer(5, again);
  wake();
  expect([fired, natives.length]).toEqual([1, 1]);
  wake();
  expect([fired, natives.length]).toEqual([2, 1]);
});

it("C083: keeps timers in the background apart, on a native timer that doesn't keep the process alive", () => {
  const { entries, of } = log();
  const background = clock.setTimer(10, of("background"), { background: true });
  expect([natives.length, keptAlive()]).toEqual([1, []]);
  const awaited = clock.setTimer(20, of("awaited"));
  expect([natives.length, keptAlive()]).toEqual([2, [20]]);
  awaited.cancel();
  background.cancel();
  expect([entries, keptAlive()]).toEqual([[], []]);
  clock.setTimer(10, of("background"), { background: true });
  expect([natives.length, keptAlive()]).toEqual([2, []]);
});

it("gives each timer a native one of its own once a test has put another setTimeout in place, and back", () => {
  const { entries, of } = log();
  clock.setTimer(10, of("before"));
  const runtimes = globalThis.setTimeout;
  const faked: [task: (timer: unknown) => void, delayMs: number, timer: unknown][] = [];
  globalThis.setTimeout = ((...args: (typeof faked)[number]) => faked.push(args)) as unknown as typeof setTimeout;
  for (const delayMs of [5, 6]) clock.setTimer(delayMs, of(`faked ${delayMs}`));
  expect(faked.map(([, delayMs]) => delayMs)).toEqual([5, 6]);
  now += 10;
  for (const [task, , timer] of faked) task(timer);
  globalThis.setTimeout = runtimes;
  clock.setTimer(1, of("after"));
  expect(natives.length).toBe(1);
  now -= 10;
  wake();
  wake();
  expect(entries).toEqual(["faked 5", "faked 6", "before", "after"]);
});

it("is moved by timers that were faked before it was loaded", async () => {
  vi.unstubAllGlobals();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }); // and not `performance`
  try {
    vi.resetModules();
    const { wheelClock } = await import("./wheel-clock.ts");
    const { entries, of } = log();
    for (const delayMs of [30, 10, 20]) wheelClock.setTimer(delayMs, of(delayMs));
    expect(vi.getTimerCount()).toBe(3);
    vi.runOnlyPendingTimers();
    expect(entries).toEqual([10, 20, 30]);
  } finally {
    vi.useRealTimers();
  }
});

it("fires in the real runtime, in no caller's async context", async () => {
  vi.unstubAllGlobals();
  const context = new AsyncLocalStorage<string>();
  const seen = await context.run("a request", () => {
    return new Promise((resolve) => {
      realClock.setTimer(1, { onTimer: () => resolve(context.getStore()) });
    });
  });
  expect(seen).toBeUndefined();
});

it.each([
  ["ends at once with 10,000 timers cancelled and 10,000 in the background", "", "0 Timeout"],
  [
    "waits for one that somebody awaits",
    "clock.setTimer(1, { onTimer: () => console.log('fired') });",
    "1 Timeout\nfired",
  ],
])("C083: a process %s", async (_, code, output) => {
  const script = `
    import { wheelClock as clock } from ${JSON.stringify(new URL("./wheel-clock.ts", import.meta.url).href)};
    const task = { onTimer() {} };
    for (let id = 0; id < 10_000; id += 1) {
      clock.setTimer(60_000, task).cancel();
      clock.setTimer(3_600_000, task, { background: true });
    }
    ${code}
    const timers = process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
    console.log(timers + " Timeout");
  `;
  const flags = ["--conditions=@sluice/source", "--input-type=module", "--eval", script];
  const { stdout } = await promisify(execFile)(process.execPath, flags, { timeout: 20_000 });
  expect(stdout.trim()).toBe(output);
});
