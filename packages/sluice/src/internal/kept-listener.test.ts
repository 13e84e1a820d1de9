import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, expect, it, vi } from "vitest";
import { Watcher } from "./abort.ts";
import { unwatchSoon } from "./kept-listener.ts";
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

it("leaves the listener to calls that follow each other, through async functions", async () => {
  const { signal } = new AbortController();
  const add = vi.spyOn(signal, "addEventListener");
  const run = async (): Promise<void> => {
    const call = watching(signal);
    await settled;
    unwatchSoon(call);
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
  unwatchSoon(watching(signal));
  expect(listeners(signal)).toBe(1);
  await microtasks(LINGER_TURNS);
  expect(listeners(signal)).toBe(0);
  for (const spy of set) expect(spy).not.toHaveBeenCalled();
});

it("begins to count anew with whoever leaves last", async () => {
  const { signal } = new AbortController();
  unwatchSoon(watching(signal));
  await microtasks(LINGER_TURNS - 1);
  const call = watching(signal);
  await microtasks(LINGER_TURNS);
  expect(listeners(signal)).toBe(1);
  unwatchSoon(call);
  await microtasks(LINGER_TURNS - 1);
  expect(listeners(signal)).toBe(1);
  unwatchSoon(watching(signal));
  await microtasks(LINGER_TURNS - 1);
  expect(listeners(signal)).toBe(1);
  await microtasks(1);
  expect(listeners(signal)).toBe(0);
});

it("hears of an abort after the listener was left to it", () => {
  const caller = new AbortController();
  const before = watching(caller.signal);
  unwatchSoon(before);
  const call = watching(caller.signal);
  caller.abort("gone");
  expect([before.endedWith, call.endedWith]).toEqual([undefined, "gone"]);
});

it("leaves no listener on a signal that aborts when nobody watches any more", async () => {
  const caller = new AbortController();
  unwatchSoon(watching(caller.signal));
  caller.abort();
  await turn();
  expect(listeners(caller.signal)).toBe(0);
});

it("keeps the listener of one signal at a time, and of the next once that has gone", async () => {
  const [{ signal: first }, { signal: second }] = [new AbortController(), new AbortController()];
  unwatchSoon(watching(first));
  unwatchSoon(watching(second));
  expect([listeners(first), listeners(second)]).toEqual([1, 0]);
  await microtasks(LINGER_TURNS);
  unwatchSoon(watching(second));
  expect([listeners(first), listeners(second)]).toEqual([0, 1]);
  await turn();
  expect(listeners(second)).toBe(0);
});

it("leaves the listener to others who watch when its turns are over", async () => {
  const { signal } = new AbortController();
  const other = watching(signal);
  unwatchSoon(watching(signal));
  await turn();
  expect(listeners(signal)).toBe(1);
  other.unwatch();
  expect(listeners(signal)).toBe(0);
});

it("does nothing for whoever watches nothing", () => {
  expect(() => unwatchSoon(new Call())).not.toThrow();
});

it("gives a listener no more turns for calls on other signals", async () => {
  const [{ signal: first }, { signal: second }] = [new AbortController(), new AbortController()];
  unwatchSoon(watching(first));
  await microtasks(LINGER_TURNS - 1);
  unwatchSoon(watching(second));
  await microtasks(1);
  expect(listeners(first)).toBe(0);
});
