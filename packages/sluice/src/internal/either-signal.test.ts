import { getEventListeners } from "node:events";
import { expect, it } from "vitest";
import { EitherSignal } from "./either-signal.ts";

it.each([0, 1])("aborts with the reason of signal %d, once", (which) => {
  const calls = [new AbortController(), new AbortController()] as const;
  const either = new EitherSignal(calls[0].signal, calls[1].signal);
  let aborts = 0;
  either.signal.addEventListener("abort", () => (aborts += 1));
  expect(either.signal.aborted).toBe(false);
  const reason = new Error("first");
  calls[which]?.abort(reason);
  calls[1 - which]?.abort(new Error("second"));
  expect([either.signal.reason, aborts]).toEqual([reason, 1]);
});

it.each([0, 1])("has aborted if signal %d has, and watches neither", (which) => {
  const calls = [new AbortController(), new AbortController()] as const;
  calls[which]?.abort("before");
  const either = new EitherSignal(calls[0].signal, calls[1].signal);
  expect([either.signal.aborted, either.signal.reason]).toEqual([true, "before"]);
  for (const { signal } of calls) expect(getEventListeners(signal, "abort")).toHaveLength(0);
});

it("can be aborted by itself, and leaves nothing on the others", () => {
  const { signal } = new AbortController();
  const either = new EitherSignal(signal);
  either.abort("timed out");
  expect([either.signal.reason, signal.aborted]).toEqual(["timed out", false]);
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
});

it("stays as it is once released, and leaves nothing on either signal", () => {
  const [first, second] = [new AbortController(), new AbortController()];
  const many = Array.from({ length: 100 }, () => new EitherSignal(first.signal, second.signal));
  const listeners = (): number[] => [first, second].map(({ signal }) => getEventListeners(signal, "abort").length);
  expect(listeners()).toEqual([1, 1]);
  for (const either of many) either.release();
  expect(listeners()).toEqual([0, 0]);
  first.abort();
  second.abort();
  expect(many.filter(({ signal }) => signal.aborted)).toEqual([]);
  for (const either of many) either.release(); // as good as once
});
