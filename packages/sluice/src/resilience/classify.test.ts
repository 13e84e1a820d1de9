import { expect, it } from "vitest";
import {
  CircuitOpenError,
  ClosedError,
  DeadlineError,
  QueueFullError,
  RateLimitedError,
  TimeoutError,
} from "../errors.ts";
import { classifyError, classifyOutcome } from "./classify.ts";

const status = (code: number): Error => Object.assign(new Error("answer"), { status: code });
const code = (name: string): Error => Object.assign(new Error("socket"), { code: name });
const judge = (reason: unknown): string => classifyOutcome({ status: "rejected", reason });

it.each([
  ["J30", status(429), "retry", "failure"],
  ["J31", status(502), "retry", "failure"],
  ["J31", status(503), "retry", "failure"],
  ["J31", status(504), "retry", "failure"],
  ["J32", code("ECONNRESET"), "retry", "failure"],
  ["J32", code("ETIMEDOUT"), "retry", "failure"],
  ["J32", code("EAI_AGAIN"), "retry", "failure"],
  ["J32", code("ECONNREFUSED"), "retry", "failure"],
  ["J32", new TypeError("fetch failed", { cause: code("UND_ERR_CONNECT_TIMEOUT") }), "retry", "failure"],
  ["J32", new TypeError("fetch failed", { cause: code("UND_ERR_HEADERS_TIMEOUT") }), "retry", "failure"],
  ["J32", new TypeError("fetch failed", { cause: code("UND_ERR_SOCKET") }), "retry", "failure"],
  ["J32", new TimeoutError(50), "retry", "failure"],
  ["J32", new DOMException("timed out", "TimeoutError"), "retry", "failure"],
  ["J33", status(400), "stop", "ignore"],
  ["J33", status(401), "stop", "ignore"],
  ["J33", status(403), "stop", "ignore"],
  ["J33", status(404), "stop", "ignore"],
  ["J33", status(422), "stop", "ignore"],
  ["J34", status(409), "stop", "ignore"],
  ["J35", new DOMException("aborted", "AbortError"), "stop", "ignore"],
  ["J36", status(500), "stop", "failure"],
  ["408", status(408), "stop", "failure"],
  ["a bug", new TypeError("x is not a function"), "stop", "failure"],
  ["no error", "a string", "stop", "failure"],
  ["nothing", undefined, "stop", "failure"],
  ["C099", new CircuitOpenError(1), "stop", "ignore"],
  ["a full queue", new QueueFullError(1), "stop", "ignore"],
  ["a rate limit of ours", new RateLimitedError(1), "stop", "ignore"],
  ["closed", new ClosedError("queue"), "stop", "ignore"],
  [
    "an unknown code, whatever caused it",
    Object.assign(new Error("pay", { cause: status(503) }), { code: "PAY" }),
    "stop",
    "failure",
  ],
  [
    "an abort with a cause, as Node has it",
    Object.assign(new Error("aborted", { cause: new TimeoutError(5) }), { name: "AbortError" }),
    "stop",
    "ignore",
  ],
  ["a number for a code", Object.assign(new Error("grpc", { cause: status(503) }), { code: 14 }), "retry", "failure"],
  ["no time left", new DeadlineError(1, 2, { cause: status(503) }), "stop", "ignore"],
])("%s: %s is for retry a reason to %s, and for a breaker one to %s", (_, error, retry, breaker) => {
  expect([classifyError(error), judge(error)]).toEqual([retry, breaker]);
});

it("finds the status wherever clients put it", () => {
  for (const error of [{ status: 503 }, { statusCode: 503 }, { response: { status: 503 } }])
    expect(classifyError(error)).toBe("retry");
  for (const error of [{ status: "503" }, { status: 7 }, { statusCode: 503.5 }, { response: null }])
    expect(classifyError(error)).toBe("stop");
});

it("reads causes, from the outside in, and lets the first that says anything decide", () => {
  const failed = new TypeError("fetch failed", { cause: code("ECONNREFUSED") });
  expect(classifyError(failed)).toBe("retry");
  expect(classifyError(new Error("sending", { cause: failed }))).toBe("retry");
  expect(classifyError(Object.assign(new Error("bad", { cause: failed }), { status: 400 }))).toBe("stop");
  expect(judge(new Error("sending", { cause: status(400) }))).toBe("ignore");
  expect(judge(new Error("sending", { cause: new DOMException("aborted", "AbortError") }))).toBe("ignore");
});

it("takes an error whose getters throw for one that says nothing", () => {
  const odd = Object.defineProperty(new Error("odd"), "status", {
    get() {
      throw new Error("no status");
    },
  });
  expect(classifyError(odd)).toBe("stop");
  expect(classifyOutcome({ status: "rejected", reason: odd })).toBe("failure");
});

it("ends with a chain of causes that bites its tail", () => {
  const error = new Error("a");
  error.cause = new Error("b", { cause: error });
  expect([classifyError(error), judge(error)]).toEqual(["stop", "failure"]);
});

it("tries several errors again if one of them may pass, however they lie in each other", () => {
  const refused = code("CIRCUIT_OPEN");
  expect(classifyError(new AggregateError([status(503), refused], "all", { cause: refused }))).toBe("retry");
  expect(classifyError(new AggregateError([refused, new AggregateError([code("ECONNRESET")])]))).toBe("retry");
  expect(classifyError(new AggregateError([refused, status(400)]))).toBe("stop");
  expect(classifyError(new AggregateError([]))).toBe("stop");
  const ring = new AggregateError([]);
  ring.errors.push(ring, ring);
  expect(classifyError(ring)).toBe("stop");
});

it("takes whatever fulfils for a success", () => {
  expect(classifyOutcome({ status: "fulfilled", value: status(503) })).toBe("success");
});
