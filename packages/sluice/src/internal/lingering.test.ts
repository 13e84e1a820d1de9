import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, expect, it, vi } from "vitest";
import { Watcher } from "./abort.ts";
import { LINGER_TURNS } from "./lingering.ts";

class Call extends Watcher {
  endedWith: unknown = undefined;

  override onAbort(reason: unknown): void {
    this.endedWith = reason;
  }
}

function watching(signal: AbortSignal): Call {
  const call = new Call();
  call.watch(signal);
  return call;
}

function listeners(signal: AbortSignal): number {
  return getEventListeners(signal, "abort").length;
}

const settled = Promise.resolve();

async function microtasks(count: number): Promise<void> {
  for (let i = 1; i < count; i += 1) await settled; // one goes by until the caller hears of it
}

afterEach(() => {
  vi.restoreAllMocks();
});

it("has no listener on a signal from the moment the last leaves", () => {
  const { signal } = new AbortController();
  const [first, second] = [watching(signal), watching(signal)];
  first.unwatch();
  expect(listeners(signal)).toBe(1);
  second.unwatch();
  expect(listeners(signal)).toBe(0);
});

it("leaves the listener to calls that follow each other, through async functions", async () => {
  const { signal } = new AbortController();
  const add = vi.spyOn(signal, "addEventListener");
  const run = async (): Promise<void> => {
    const call = watching(signal);
    await settled;
    call.unwatchSoon();
  };
  const wrapped = async (): Promise<void> => await run();
  for (let i = 0; i < 100; i += 1) await wrapped();
  expect(add).toHaveBeenCalledOnce();
  await turn();
  expect(listeners(signal)).toBe(0);
});

it("takes the listener away a few microtasks after the last, with no timer", async () => {
  const timers = ["setTimeout", "setInterval", "setImmediate"] as const;
  const set = timers.map((name) => vi.spyOn(globalThis, name));
  const { signal } = new AbortController();
  watching(signal).unwatchSoon();
  expect(listeners(signal)).toBe(1);
  await microtasks(LINGER_TURNS);
  expect(listeners(signal)).toBe(0);
  for (const spy of set) expect(spy).not.toHaveBeenCalled();
});

it("begins to count anew with whoever leaves last, and queues nothing while somebody watches", async () => {
  const { signal } = new AbortController();
  watching(signal).unwatchSoon();
  await microtasks(LINGER_TURNS - 1);
  const call = watching(signal);
  await microtasks(LINGER_TURNS);
  expect(listeners(signal)).toBe(1);
  call.unwatchSoon();
  await microtasks(LINGER_TURNS - 1);
  expect(listeners(signal)).toBe(1);
  watching(signal).unwatchSoon();
  await microtasks(LINGER_TURNS - 1);
  expect(listeners(signal)).toBe(1);
  await microtasks(1);
  expect(listeners(signal)).toBe(0);
});

it("goes at once if who leaves last leaves nothing to the next, whoever left before", async () => {
  const { signal } = new AbortController();
  const call = watching(signal);
  watching(signal).unwatchSoon();
  call.unwatchSoon();
  watching(signal).unwatch();
  expect(listeners(signal)).toBe(0);
  const next = watching(signal);
  await turn();
  expect(listeners(signal)).toBe(1);
  next.unwatch();
});

it("hears of an abort after the listener was left to it", () => {
  const caller = new AbortController();
  const before = watching(caller.signal);
  before.unwatchSoon();
  const call = watching(caller.signal);
  caller.abort("gone");
  expect([before.endedWith, call.endedWith]).toEqual([undefined, "gone"]);
});

it("leaves no listener on a signal that aborts when nobody watches any more", async () => {
  const caller = new AbortController();
  watching(caller.signal).unwatchSoon();
  caller.abort();
  await turn();
  expect(listeners(caller.signal)).toBe(0);
});

it("has nobody in its list whom the signal would take no listener for", () => {
  const caller = new AbortController();
  vi.spyOn(caller.signal, "addEventListener").mockImplementationOnce(() => {
    throw new Error("broken");
  });
  const call = new Call();
  expect(() => call.watch(caller.signal)).toThrow("broken");
  expect(call.watchers).toBeUndefined();
  call.watch(caller.signal);
  caller.abort("gone");
  expect(call.endedWith).toBe("gone");
});
