import { expect, it } from "vitest";
import { isEcho } from "./cancellation.ts";

it("takes nothing for the answer to an abort that can't be looked at", () => {
  const { proxy, revoke } = Proxy.revocable(new Error("gone"), {});
  revoke();
  expect(isEcho(proxy, AbortSignal.abort("reason"))).toBe(false);
});

it("takes for it the reason itself, and what calls itself an AbortError, once the signal has aborted", () => {
  const call = new AbortController();
  const own = Object.assign(new Error("aborted"), { name: "AbortError" });
  expect([isEcho("reason", call.signal), isEcho(own, call.signal)]).toEqual([false, false]);
  call.abort("reason");
  expect([isEcho("reason", call.signal), isEcho(own, call.signal), isEcho("another", call.signal)]).toEqual([
    true,
    true,
    false,
  ]);
});
