import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { CircuitOpenError } from "../errors.ts";
import { type AbortSubject, abortCases } from "../testing/abort-suite.ts";
import { fallback } from "./fallback.ts";

const subject: AbortSubject = {
  name: "Fallback.run",
  lacks: { waiting: "it calls fn at once", timeoutMs: "it bounds admission, and nobody waits to be admitted" },
  open() {
    const policy = fallback("default");
    const calls: (() => void)[] = [];
    return {
      call: (options) => policy.run(() => new Promise<void>((resolve) => void calls.push(resolve)), options),
      satisfy: () => calls.shift()?.(),
      state: () => ({ fallbacks: policy.stats().fallbacks }),
    };
  },
};
for (const { title, run } of abortCases(subject)) it(title, run);

const failure = new Error("down");
const broken = (): never => {
  throw new Error("broken");
};
const fails = (): Promise<number> => Promise.reject(failure);

it("answers with the value in place of an error, and with the result if there is one", async () => {
  const policy = fallback("default");
  expect(await policy.run(fails)).toBe("default");
  expect(await policy.run(() => 5)).toBe(5);
  expect(policy.stats()).toEqual({ calls: 2, fallbacks: 1, failed: 0 });
});

it("calls fn at once, and takes its synchronous throw for a rejection", async () => {
  let called = false;
  const result = fallback(undefined).run(() => {
    called = true;
    throw failure;
  });
  expect(called).toBe(true);
  expect(await result).toBeUndefined();
});

it("asks a function for the answer, with the error and the signal, and waits for what it gives", async () => {
  const call = new AbortController();
  const policy = fallback(async (error, { signal }) => {
    await turn();
    return [error, signal];
  });
  expect(await policy.run(fails, call)).toEqual([failure, call.signal]);
});

it("falls back from the errors it is told to only, and hands the others on as they are", async () => {
  const policy = fallback("older value", { when: (error) => error instanceof CircuitOpenError });
  expect(await policy.run(() => Promise.reject(new CircuitOpenError(100)))).toBe("older value");
  await expect(policy.run(fails)).rejects.toBe(failure);
  expect(policy.stats()).toEqual({ calls: 2, fallbacks: 1, failed: 0 });
});

it("falls back from results, if it is told to, and hands them to the function", async () => {
  const policy = fallback((result) => `instead of ${String(result)}`, { whenResult: (result) => result === null });
  expect(await policy.run(() => null)).toBe("instead of null");
  expect(await policy.run(() => Promise.resolve(null))).toBe("instead of null");
  expect(await policy.run(() => "fine")).toBe("fine");
});

it("never falls back from the caller's abort", async () => {
  const call = new AbortController();
  const asked: unknown[] = [];
  const policy = fallback("default", { when: (error) => asked.push(error) > 0, whenResult: () => asked.push(0) > 0 });
  const work = Promise.withResolvers<number>();
  const result = policy.run(() => work.promise, call);
  const late = policy.run(() => work.promise.catch(() => 7), call);
  call.abort("caller");
  work.reject(call.signal.reason);
  await expect(result).rejects.toBe("caller");
  expect(await late).toBe(7);
  await expect(policy.run(() => 1, call)).rejects.toBe("caller");
  expect(asked).toEqual([]);
});

it("rejects with what the fallback throws, whose cause is the error that it was called for", async () => {
  const worse = new Error("also down");
  const policy = fallback(() => Promise.reject(worse));
  await expect(policy.run(fails)).rejects.toBe(worse);
  expect(worse.cause).toBe(failure);
  expect(Object.keys(worse)).toEqual([]);
  expect(policy.stats()).toEqual({ calls: 1, fallbacks: 1, failed: 1 });
});

it("leaves a cause that is there, what is no error, what is frozen and the error itself as they are", async () => {
  const caused = new Error("also down", { cause: "its own" });
  for (const thrown of [caused, "text", Object.freeze(new Error("frozen")), failure]) {
    const policy = fallback(() => {
      throw thrown;
    });
    await expect(policy.run(fails)).rejects.toBe(thrown);
  }
  expect([caused.cause, failure.cause]).toEqual(["its own", undefined]);
});

it("rejects with what when or whenResult throws", async () => {
  await expect(fallback(1, { when: broken }).run(fails)).rejects.toThrow("broken");
  await expect(fallback(1, { whenResult: broken }).run(() => 2)).rejects.toThrow("broken");
});

it("refuses a rule that is no function, before any call", () => {
  for (const name of ["when", "whenResult"])
    expect(() => fallback(1, { [name]: "always" })).toThrow(`${name} must be a function, got string`);
});

it("answers as a fallback of the fallback, from the inside out", async () => {
  const outer = fallback("last");
  const inner = fallback(() => Promise.reject(new Error("second is down")));
  expect(await outer.run(() => inner.run(fails))).toBe("last");
  await turn();
});
