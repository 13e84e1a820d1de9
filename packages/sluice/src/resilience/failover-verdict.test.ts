import { expect, it } from "vitest";
import {
  CircuitOpenError,
  ClosedError,
  DeadlineError,
  QueueFullError,
  RateLimitedError,
  TimeoutError,
} from "../errors.ts";
import { classifyFailover } from "./failover-verdict.ts";

const withStatus = (status: number): Error => Object.assign(new Error("said no"), { status });

it.each([400, 401, 403, 404, 409, 422, 499])("J55: stops at a %d, which another target would repeat", (status) => {
  expect(classifyFailover(withStatus(status))).toBe("stop");
  expect(classifyFailover({ statusCode: status })).toBe("stop");
  expect(classifyFailover(new Error("wrapped", { cause: { response: { status } } }))).toBe("stop");
});

it.each([408, 429, 500, 502, 503, 504])("goes on after a %d", (status) => {
  expect(classifyFailover(withStatus(status))).toBe("next");
  expect(classifyFailover(new Error("wrapped", { cause: withStatus(status) }))).toBe("next");
});

it("goes on after what a breaker or limit of this target refused, a timeout, a lost connection and what says nothing", () => {
  const refusals = [new CircuitOpenError(1), new QueueFullError(1), new RateLimitedError(1), new ClosedError("queue")];
  const others = [new TimeoutError(1), Object.assign(new Error("reset"), { code: "ECONNRESET" }), new Error("odd")];
  for (const error of [...refusals, ...others, "text", undefined, null]) expect(classifyFailover(error)).toBe("next");
});

it("stops at an abort, and where there is not enough time", () => {
  for (const error of [new DOMException("gone", "AbortError"), new DeadlineError(1, 2)]) {
    expect(classifyFailover(error)).toBe("stop");
    expect(classifyFailover(new Error("wrapped", { cause: error }))).toBe("stop");
  }
});

it("reads of an AggregateError the last to fail, which is its cause", () => {
  const error = new AggregateError([withStatus(503), withStatus(404)], "all failed", { cause: withStatus(404) });
  expect(classifyFailover(error)).toBe("stop");
});
