import { expect, it } from "vitest";
import { Limiter } from "../flow/limiter.ts";
import { RateLimiter } from "../pace/rate-limiter.ts";
import type { Policy, Task } from "../policy.ts";
import { Mutex } from "../sync/mutex.ts";
import { Semaphore } from "../sync/semaphore.ts";
import { aimd } from "./adaptive-limiter-aimd.ts";
import { AdaptiveLimiter } from "./adaptive-limiter.ts";
import { chaosFault } from "./chaos.ts";
import { CircuitBreaker } from "./circuit-breaker.ts";
import { compose } from "./compose.ts";
import { retry } from "./retry.ts";
import { timeout } from "./timeout.ts";

const breaker = new CircuitBreaker();
const slots = new Semaphore(4);
const rate = new RateLimiter({ count: 5, perMs: 1_000 });

/** Of another library, which says what kind of thing it is. */
class Foreign implements Policy {
  readonly kind: string;

  constructor(kind: string) {
    this.kind = kind;
  }

  async run<T>(fn: Task<T>): Promise<T> {
    return fn({ signal: undefined });
  }
}

function problemsOf(...layers: readonly [Policy, ...Policy[]]): string[] {
  return compose(...layers).problems.map(
    ({ rule, failureMode, outerIndex, innerIndex }) => `${failureMode} ${rule} ${outerIndex} ${innerIndex}`,
  );
}

it("has nothing to say against the order in which each layer does its work", () => {
  const chaos = chaosFault(() => new Error("down"), { rate: 0.1 });
  const fallback = new Foreign("fallback");
  expect(problemsOf(fallback, timeout(9_000), retry(), breaker, timeout(3_000), rate, slots, chaos)).toEqual([]);
  expect(problemsOf(timeout(9_000), retry(), breaker, new Limiter(4))).toEqual([]);
  expect(problemsOf(breaker, new AdaptiveLimiter(aimd()))).toEqual([]);
});

it.each([
  ["semaphore", slots],
  ["mutex", new Mutex()],
  ["limiter", new Limiter(1)],
  ["adaptive-limiter", new AdaptiveLimiter(aimd())],
])("F10.5: tells that a %s around a retry keeps its slot while it waits", (kind, slot) => {
  const [problem] = compose(slot, retry()).problems;
  expect(problem).toEqual({
    rule: "slot-held-while-waiting",
    failureMode: "F10.5",
    outer: kind,
    inner: "retry",
    outerIndex: 0,
    innerIndex: 1,
    evidence: `${kind} around retry: it keeps its slot while the retry waits for its next attempt`,
    remedy: "put the limit inside the retry",
  });
});

it("F05.4: tells of layers whose attempts multiply, however far apart", () => {
  expect(problemsOf(retry(), breaker, retry())).toEqual([
    "F05.4 retries-multiply 0 2",
    "C099 breaker-outside-retry 1 2",
  ]);
  expect(problemsOf(retry(), new Foreign("hedge"))).toEqual(["F05.4 retries-multiply 0 1"]);
  expect(problemsOf(compose(timeout(10), retry()), compose(retry()))).toEqual(["F05.4 retries-multiply 1 2"]);
});

it("C099: tells that a breaker around a retry counts one failure for all attempts", () => {
  expect(problemsOf(breaker, retry())).toEqual(["C099 breaker-outside-retry 0 1"]);
});

it("J01: tells that a rate around a retry doesn't count the attempts", () => {
  expect(problemsOf(rate, retry())).toEqual(["J01 rate-outside-retry 0 1"]);
});

it("F02.4: tells that a fallback hides failures from what is around it", () => {
  expect(problemsOf(retry(), breaker, new Foreign("fallback"))).toEqual([
    "F02.4 fallback-inside 0 2",
    "F02.4 fallback-inside 1 2",
  ]);
});

it("F10.4: tells that a hedge makes several calls for one slot", () => {
  expect(problemsOf(slots, new Foreign("hedge"))).toEqual(["F10.4 slot-shared-by-hedge 0 1"]);
});

it("C112: tells that a limit around a timeout has its slot back before the work has ended", () => {
  expect(problemsOf(slots, timeout(1_000))).toEqual(["C112 slot-freed-early 0 1"]);
  expect(problemsOf(slots, timeout(1_000, { mode: "cooperative" }))).toEqual([]);
});

it("J45: tells of a timeout that one around it never lets come", () => {
  expect(problemsOf(timeout(1_000), retry(), timeout(1_000))).toEqual(["J45 timeout-never-reached 0 2"]);
  expect(problemsOf(timeout(1_000), retry(), timeout(999))).toEqual([]);
});

it("F02.2: tells of a limit that a call takes twice", () => {
  expect(problemsOf(slots, breaker, slots)).toEqual(["F02.2 same-limit-twice 0 2"]);
  expect(problemsOf(slots, breaker, new Semaphore(4))).toEqual([]);
});
