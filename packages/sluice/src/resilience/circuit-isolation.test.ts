import { expect, it } from "vitest";
import { CircuitOpenError } from "../errors.ts";
import { CircuitBreaker } from "./circuit-breaker.ts";
import { isolate } from "./circuit-isolation.ts";

const passes = (breaker: CircuitBreaker): Promise<boolean> =>
  breaker.run(() => true).catch((error: unknown) => !(error instanceof CircuitOpenError));

it("turns all calls away until the last handle has been released, each counted once", async () => {
  const breaker = new CircuitBreaker();
  const [first, second] = [isolate(breaker), isolate(breaker)];
  first.release();
  first.release();
  expect([breaker.mode, await passes(breaker)]).toEqual(["isolated", false]);
  second.release();
  expect([breaker.mode, await passes(breaker)]).toEqual(["normal", true]);
});

it("ends with its block", async () => {
  const breaker = new CircuitBreaker();
  {
    using _ = isolate(breaker);
    expect(await passes(breaker)).toBe(false);
  }
  expect(await passes(breaker)).toBe(true);
});

it("gives back the mode that the breaker had, unless it was given another meanwhile", () => {
  const breaker = new CircuitBreaker();
  breaker.mode = "metrics-only";
  isolate(breaker).release();
  expect(breaker.mode).toBe("metrics-only");
  const handle = isolate(breaker);
  breaker.mode = "disabled";
  handle.release();
  expect(breaker.mode).toBe("disabled");
});

it("gives back the mode that it was given while another handle was out", () => {
  const breaker = new CircuitBreaker();
  const first = isolate(breaker);
  breaker.mode = "disabled";
  const second = isolate(breaker);
  first.release();
  expect(breaker.mode).toBe("isolated");
  second.release();
  expect(breaker.mode).toBe("disabled");
});

it("leaves other breakers alone, and can begin anew", async () => {
  const [one, other] = [new CircuitBreaker(), new CircuitBreaker()];
  const handle = isolate(one);
  expect(await passes(other)).toBe(true);
  handle.release();
  const again = isolate(one);
  handle.release(); // of the first time
  expect(await passes(one)).toBe(false);
  again.release();
  expect(await passes(one)).toBe(true);
});
