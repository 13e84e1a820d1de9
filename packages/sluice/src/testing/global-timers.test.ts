import { promisify } from "node:util";
import { expect, it, vi } from "vitest";
import { sleep } from "../clock/sleep.ts";
import { VirtualClock } from "./virtual-clock.ts";

const START_AT = Date.UTC(2030, 0, 1);

it("puts timers, dates and measurements of code that takes no clock on virtual time", async () => {
  const clock = new VirtualClock({ wallStartAt: START_AT });
  using _ = clock.installGlobals();
  const log: unknown[] = [];
  setTimeout((...args: unknown[]) => log.push(["timeout", performance.now(), ...args]), 3_600_000, "a", "b");
  const interval = setInterval(() => log.push(["interval", Date.now() - START_AT]), 1_500_000);
  setImmediate(() => log.push(["immediate", new Date().toISOString()]));
  await clock.advance(3_600_000);
  clearInterval(interval);
  await clock.runToIdle();
  expect(log).toEqual([
    ["immediate", "2030-01-01T00:00:00.000Z"],
    ["interval", 1_500_000],
    ["interval", 3_000_000],
    ["timeout", 3_600_000, "a", "b"],
  ]);
  expect(clock.timers).toBe(0);
});

it("drives what takes the system's clock by default", async () => {
  const clock = new VirtualClock();
  using _ = clock.installGlobals();
  let woken = false;
  const asleep = sleep(40 * 86_400_000).then(() => (woken = true));
  await clock.advance(40 * 86_400_000 - 1);
  expect(woken).toBe(false);
  await clock.advance(1);
  await asleep;
});

it("puts back exactly what was there, and is as good as once", () => {
  const keys = ["setTimeout", "setInterval", "setImmediate", "clearTimeout", "clearInterval", "clearImmediate", "Date"];
  const seen = (): unknown[] => [
    ...keys.map((key) => Object.getOwnPropertyDescriptor(globalThis, key)),
    Object.getOwnPropertyDescriptor(performance, "now"),
    performance.now, // oxlint-disable-line typescript/unbound-method -- only compared
    Object.getOwnPropertyDescriptor(AbortSignal, "timeout"),
    Object.keys(globalThis),
  ];
  const before = seen();
  const installed = new VirtualClock().installGlobals();
  const between = seen();
  for (const [index] of keys.entries()) expect(between[index]).not.toEqual(before[index]);
  installed.restore();
  expect(seen()).toEqual(before);
  const others = new VirtualClock().installGlobals();
  installed.restore();
  expect(seen()).not.toEqual(before);
  others.restore();
  expect(seen()).toEqual(before);
});

it("leaves nothing of its own where a global was inherited, as performance.now is in browsers", () => {
  vi.stubGlobal("performance", Object.create({ now: () => 5 }));
  try {
    const installed = new VirtualClock().installGlobals();
    expect(performance.now()).toBe(0);
    installed.restore();
    expect([performance.now(), Object.hasOwn(performance, "now")]).toEqual([5, false]);
  } finally {
    vi.unstubAllGlobals();
  }
});

it("refuses to be installed twice, and to restore what somebody else has replaced since", () => {
  const installed = new VirtualClock().installGlobals();
  try {
    expect(() => new VirtualClock().installGlobals()).toThrow("on a virtual clock already");
    const spy = vi.spyOn(globalThis, "setInterval");
    expect(() => installed.restore()).toThrow("setInterval was replaced again since");
    spy.mockRestore();
  } finally {
    installed.restore();
  }
});

it("gives out timers as Node does: an object, a number where one is asked for", async () => {
  const clock = new VirtualClock();
  using _ = clock.installGlobals();
  const fired: string[] = [];
  const [byObject, byNumber, byText, kept] = ["object", "number", "text", "kept"].map((id) =>
    setTimeout(() => fired.push(id), 10),
  );
  clearTimeout(byObject);
  clearTimeout(Number(byNumber));
  clearInterval(String(Number(byText)));
  kept?.refresh().close().refresh();
  clearTimeout(undefined);
  await clock.advance(10);
  expect([fired, clock.timers]).toEqual([["kept"], 0]);
  clearTimeout(kept); // in vain
  expect(() => setTimeout("code" as unknown as () => void, 1)).toThrow(TypeError);
  {
    using own = setTimeout(() => fired.push("disposed"), 1);
    expect(own.hasRef()).toBe(true);
  }
  expect(clock.timers).toBe(0);
});

it("lets a timer that was unreferenced go on alone in the background", async () => {
  const clock = new VirtualClock();
  using _ = clock.installGlobals();
  const heartbeat = setInterval(() => {}, 10).unref();
  setTimeout(() => {}, 25);
  await clock.runToIdle();
  expect([clock.now(), clock.timers, heartbeat.hasRef()]).toEqual([25, 1, false]);
  heartbeat.ref();
  await expect(clock.runToIdle({ maxTimers: 5 })).rejects.toThrow("5 timers have fired");
  clearInterval(heartbeat);
  expect(clock.timers).toBe(0);
});

it("ends an interval in its own call, and goes on with it after one that throws", async () => {
  const clock = new VirtualClock();
  using _ = clock.installGlobals();
  let calls = 0;
  const interval = setInterval(() => {
    calls += 1;
    if (calls === 1) throw new Error("broken");
    clearInterval(interval);
  }, 10);
  await expect(clock.advance(10)).rejects.toThrow("broken");
  await clock.advance(100);
  expect([calls, clock.timers]).toEqual([2, 0]);
});

it.each([
  [2 ** 31, 1],
  [2 ** 31 - 1, 2 ** 31 - 1],
  [0, 1],
  [-5, 1],
  [1.9, 1],
  ["7", 7],
  [undefined, 1],
  [Number.NaN, 1],
])("takes a delay of %s for %d ms, as the runtime does", async (given, delayMs) => {
  const clock = new VirtualClock();
  using _ = clock.installGlobals();
  setTimeout(() => {}, given as number);
  await clock.runToIdle();
  expect(clock.now()).toBe(delayMs);
});

it("tells the time of its clock from every form of Date, and leaves dates that are given alone", () => {
  const clock = new VirtualClock({ wallStartAt: START_AT + 0.7 });
  using _ = clock.installGlobals();
  class Own extends Date {}
  expect([new Date().getTime(), Date.now(), Number(new Own())]).toEqual([START_AT, START_AT, START_AT]);
  expect(Date()).toBe(new Date(START_AT).toString()); // oxlint-disable-line unicorn/new-for-builtins -- the form is what is tested
  expect(new Date(0).toISOString()).toBe("1970-01-01T00:00:00.000Z");
  expect(Date.UTC(2030, 0, 1)).toBe(START_AT);
  expect([new Date() instanceof Date, new Own() instanceof Own]).toEqual([true, true]);
});

it("aborts AbortSignal.timeout by its clock, with the platform's error, and waits for none", async () => {
  const clock = new VirtualClock();
  using _ = clock.installGlobals();
  const signal = AbortSignal.timeout(50);
  await clock.runToIdle();
  expect([clock.now(), signal.aborted]).toEqual([0, false]);
  await clock.advance(50);
  expect([signal.aborted, (signal.reason as DOMException).name]).toEqual([true, "TimeoutError"]);
});

it("clears the timers that were set before it was installed", async () => {
  let fired = false;
  const before = setTimeout(() => (fired = true), 0);
  const immediate = setImmediate(() => (fired = true));
  {
    using _ = new VirtualClock().installGlobals();
    clearTimeout(before);
    clearImmediate(immediate);
  }
  await new Promise((resolve) => void setTimeout(resolve, 1)); // comes after both
  expect(fired).toBe(false);
});

it("clears nothing by what is no timer, as the runtime does", async () => {
  const clock = new VirtualClock();
  using _ = clock.installGlobals();
  let fired = false;
  setTimeout(() => (fired = true), 1);
  for (const id of [undefined, null, Symbol("no timer"), Object.create(null), {}, Number.NaN, "x"])
    clearTimeout(id as never);
  await clock.advance(1);
  expect(fired).toBe(true);
});

it("refuses for AbortSignal.timeout what the platform refuses", () => {
  const bad = [-1, Number.NaN, Infinity, "5"] as number[];
  for (const delayMs of bad) expect(() => AbortSignal.timeout(delayMs)).toThrow();
  using _ = new VirtualClock().installGlobals();
  for (const delayMs of bad) expect(() => AbortSignal.timeout(delayMs)).toThrow();
});

it("is promisified as the runtime's setTimeout is", async () => {
  const clock = new VirtualClock();
  using _ = clock.installGlobals();
  const pause = promisify(setTimeout)(1_000, "value");
  await clock.advance(1_000);
  expect(await pause).toBe("value");
});
