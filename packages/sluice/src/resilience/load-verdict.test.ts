import { expect, it } from "vitest";
import { CircuitOpenError, OverloadedError, RateLimitedError, TimeoutError } from "../errors.ts";
import { classifyOutcome } from "./classify.ts";
import { classifyLoad } from "./load-verdict.ts";

function verdict(reason: unknown): string {
  return classifyLoad({ status: "rejected", reason });
}

it("takes 429, 502 to 504, timeouts and broken connections for overload", () => {
  expect([429, 502, 503, 504].map((status) => verdict({ status }))).toEqual(Array(4).fill("overload"));
  expect(verdict(new Error("wrapped", { cause: { statusCode: 503 } }))).toBe("overload");
  expect([verdict(new TimeoutError(1)), verdict({ code: "ECONNRESET" })]).toEqual(["overload", "overload"]);
});

it("ignores what else fails, since a quick failure is no sign of health", () => {
  expect([400, 404, 500].map((status) => verdict({ status }))).toEqual(Array(3).fill("ignore"));
  const refusals = [new OverloadedError(1), new CircuitOpenError(1), new RateLimitedError(1)];
  const others = [new DOMException("", "AbortError"), new Error("odd"), "text", undefined];
  for (const reason of [...refusals, ...others]) expect(verdict(reason)).toBe("ignore");
});

it("takes whatever fulfils for a success", () => {
  for (const value of [1, undefined, { status: 503 }])
    expect(classifyLoad({ status: "fulfilled", value })).toBe("success");
});

it("lets a breaker ignore what a limit has turned away", () => {
  expect(classifyOutcome({ status: "rejected", reason: new OverloadedError(1) })).toBe("ignore");
});
