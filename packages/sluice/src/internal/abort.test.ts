import { getEventListeners } from "node:events";
import { expect, it, vi } from "vitest";
import { Watcher } from "./abort.ts";

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

it("has no listener on a signal from the moment the last leaves", () => {
  const { signal } = new AbortController();
  const [first, second] = [watching(signal), watching(signal)];
  first.unwatch();
  expect(listeners(signal)).toBe(1);
  second.unwatch();
  expect(listeners(signal)).toBe(0);
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
