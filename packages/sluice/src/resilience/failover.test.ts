import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { sleep } from "../clock/sleep.ts";
import { CircuitOpenError } from "../errors.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { CircuitBreaker } from "./circuit-breaker.ts";
import { failover } from "./failover.ts";
import { RetryBudget } from "./retry-budget.ts";
import type { FailoverContext } from "./hedge-options.ts";

type Target = (signal: AbortSignal) => Promise<string>;

const ask = ({ target, signal }: FailoverContext<Target>): Promise<string> => target(signal);

it("J55: asks the next target at once when one fails, not after the delay", async () => {
  const clock = new VirtualClock();
  const asked: string[] = [];
  const result = failover(["a", "b", "c"], { hedgeAfterMs: 1_000, clock }).run(async ({ target, attempt }) => {
    asked.push(`${target}${attempt} at ${clock.now()}`);
    await sleep(10, { clock });
    if (target !== "c") throw new Error(target);
    return target;
  });
  await clock.advance(30);
  expect(await result).toBe("c");
  expect([asked, clock.timers]).toEqual([["a1 at 0", "b2 at 10", "c3 at 20"], 0]);
});

it("asks one target alone as long as it takes, without a delay to hedge after", async () => {
  const clock = new VirtualClock();
  const policy = failover(["a", "b"], { clock });
  const result = policy.run(({ target }) => sleep(1e9, { clock }).then(() => target));
  expect(clock.timers).toBe(1); // that of the target
  await clock.advance(1e9);
  expect([await result, policy.stats().attempts]).toEqual(["a", 1]);
});

it("D06: asks the next when none has answered for a while; the loser is aborted, which a race would leave streaming", async () => {
  const clock = new VirtualClock();
  let streamed = 0;
  const hangs: Target = async (signal) => {
    for (;;) {
      await sleep(1_000, { clock, signal });
      streamed += 1;
    }
  };
  const answers: Target = () => sleep(500, { clock }).then(() => "second");
  const policy = failover([hangs, answers], { hedgeAfterMs: 8_000, clock });
  const result = policy.run(ask);
  await clock.advance(60_000);
  expect([await result, streamed, clock.timers]).toEqual(["second", 8, 0]);
  expect(policy.stats()).toMatchObject({ losers: 0, lateErrors: 0, extraWon: 1 });
});

it("K08: the signal of a target that is not waited for any more has aborted, so that nothing is written late", async () => {
  const clock = new VirtualClock();
  const written: string[] = [];
  const writer =
    (name: string, tookMs: number): Target =>
    async (signal) => {
      await sleep(tookMs, { clock });
      signal.throwIfAborted();
      written.push(name);
      return name;
    };
  const policy = failover([writer("slow", 300), writer("quick", 50)], { hedgeAfterMs: 100, clock });
  const result = policy.run(ask);
  await clock.advance(1_000);
  expect([await result, written]).toEqual(["quick", ["quick"]]);
});

it("J55: rejects with an AggregateError of what each target failed with, in their order", async () => {
  const clock = new VirtualClock();
  const fails =
    (name: string, tookMs: number): Target =>
    () =>
      sleep(tookMs, { clock }).then(() => Promise.reject(new Error(name)));
  const targets = [fails("a", 50), fails("b", 10), fails("c", 5)];
  const result = failover(targets, { hedgeAfterMs: 20, clock })
    .run(ask)
    .catch((error: unknown) => error);
  await clock.advance(1_000);
  const error = (await result) as AggregateError;
  expect(error).toBeInstanceOf(AggregateError);
  expect(error.errors.map(({ message }: Error) => message)).toEqual(["a", "b", "c"]);
  expect(error.cause).toBe(error.errors[0]); // the last to fail
});

it("J55: does not ask another target after a bad request, and rejects with what the first said", async () => {
  for (const status of [400, 401, 403, 404, 422]) {
    const bad = Object.assign(new Error("bad"), { status });
    const asked: string[] = [];
    const result = failover(["a", "b"]).run(({ target }) => {
      asked.push(target);
      throw bad;
    });
    await expect(result).rejects.toBe(bad);
    expect(asked).toEqual(["a"]);
  }
});

it.each([408, 429, 500, 502, 503])("asks another target after a %d", async (status) => {
  const result = failover(["a", "b"]).run(({ target }) => {
    if (target === "a") throw new Error("wrapped", { cause: Object.assign(new Error("no"), { status }) });
    return target;
  });
  expect(await result).toBe("b");
});

it("asks no other target after an abort of its own, or for want of time", async () => {
  for (const error of [
    new DOMException("aborted", "AbortError"),
    Object.assign(new Error("late"), { code: "DEADLINE" }),
  ]) {
    const result = failover(["a", "b"]).run(({ target }) => (target === "a" ? Promise.reject(error) : target));
    await expect(result).rejects.toBe(error);
  }
});

it("J55: the caller's abort, also one beforehand, ends all with its reason and asks no other", async () => {
  const clock = new VirtualClock();
  const call = new AbortController();
  const signals: AbortSignal[] = [];
  const hangs: Target = (signal) => {
    signals.push(signal);
    return sleep(Infinity, { clock, signal }).then(() => "never");
  };
  const policy = failover([hangs, hangs, hangs], { hedgeAfterMs: 100, clock });
  const result = expect(policy.run(ask, call)).rejects.toBe("caller");
  await clock.advance(150);
  call.abort("caller");
  await result;
  expect(signals.map(({ reason }) => reason as unknown)).toEqual(["caller", "caller"]);
  await expect(policy.run(ask, call)).rejects.toBe("caller");
  await clock.advance(1_000);
  expect([signals.length, clock.timers, policy.stats().losers]).toEqual([2, 0, 0]);
});

it("J54: passes over a target whose breaker is open at no cost", async () => {
  const clock = new VirtualClock();
  let calls = 0;
  const dead = { name: "dead", breaker: new CircuitBreaker({ failures: 2, clock }) };
  const alive = { name: "alive", breaker: new CircuitBreaker({ failures: 2, clock }) };
  const policy = failover([dead, alive], { clock });
  const run = (): Promise<string> =>
    policy.run(({ target, signal }) =>
      target.breaker.run(
        () => {
          calls += 1;
          if (target === dead) throw new Error("down");
          return target.name;
        },
        { signal },
      ),
    );
  for (let i = 0; i < 10; i += 1) expect(await run()).toBe("alive");
  expect(calls).toBe(2 + 10);
  await expect(dead.breaker.run(() => 1)).rejects.toThrow(CircuitOpenError);
});

it("J54: spends none of the budget on a target that was not asked, so that an open breaker ends no more than itself", async () => {
  const clock = new VirtualClock();
  const breaker = new CircuitBreaker({ failures: 1, clock });
  const budget = new RetryBudget({ minPerSecond: 0.1, clock });
  const policy = failover(["a", "b"], { budget, clock });
  const answer = (): Promise<string> =>
    policy.run(({ target }) => (target === "a" ? breaker.run(() => Promise.reject(new Error("down"))) : target));
  for (let calls = 0; calls < 5; calls += 1) expect(await answer()).toBe("b");
  expect([budget.stats(), policy.stats().refused]).toEqual([{ calls: 5, retries: 1, left: 0, refused: 0 }, 0]);
  breaker.close();
  await expect(answer()).rejects.toThrow("all 1 attempts failed");
});

it("takes anything for a target, undefined too, and the list as it was when it was made", async () => {
  const targets: (string | undefined)[] = [undefined, "b"];
  const policy = failover(targets);
  targets.pop();
  const fails = policy.run(({ target }) => Promise.reject(new Error(String(target))));
  await expect(fails).rejects.toMatchObject({ errors: [{ message: "undefined" }, { message: "b" }] });
  await turn();
});

it("refuses what is no list of targets", () => {
  expect(() => failover([])).toThrow("targets must have one item at least, got none");
  expect(() => failover("targets" as unknown as string[])).toThrow(TypeError);
  expect(() => failover(["a"], { hedgeAfterMs: -1 })).toThrow(RangeError);
});
