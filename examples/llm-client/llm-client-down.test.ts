import { CircuitBreaker, RetryBudget } from "sluice";
import { afterEach, beforeEach, expect, it } from "vitest";
import { FaultyBreaker } from "./faulty-breaker.ts";
import { HELLO, prompt, read, Stage } from "./llm-client.stage.ts";

let stage: Stage;

beforeEach(async () => {
  stage = await Stage.open();
});
afterEach(() => stage.server.stop());

it("takes no provider for broken that is only limited", async () => {
  stage.server.behave("a", { status: 429 });
  const limited = stage.provider("a");
  for (let calls = 0; calls < 5; calls += 1)
    await expect(stage.passing(stage.client([limited]).stream(prompt))).rejects.toThrow();
  stage.server.behave("a", HELLO);
  expect(await read(await stage.client([limited]).stream(prompt))).toBe("Hello!");
});

it("tries another round when all have failed and one may do better, and only then", async () => {
  stage.server.behave("a", { status: 503 }, HELLO);
  stage.server.behave("b", { status: 500 });
  const stream = await stage.passing(stage.client([stage.provider("a"), stage.provider("b")]).stream(prompt));
  expect([stream.from, stage.server.asked]).toEqual(["a", { a: 2, b: 1 }]);
  stage.server.behave("a", { status: 500 });
  await expect(stage.passing(stage.client([stage.provider("a"), stage.provider("b")]).stream(prompt))).rejects.toThrow(
    "all 2 attempts failed",
  );
  expect(stage.server.asked).toEqual({ a: 3, b: 2 });
});

it("asks providers that are down a tenth more than there are calls, however often each may try", async () => {
  stage.server.behave("a", { status: 503 });
  stage.server.behave("b", { status: 503 });
  const breaker = new CircuitBreaker({ clock: stage.clock });
  breaker.mode = "disabled";
  const budget = new RetryBudget({ ratio: 0.1, minPerSecond: 0, clock: stage.clock });
  const client = stage.client([stage.provider("a", { breaker }), stage.provider("b", { breaker })], { budget });
  const calls = Array.from({ length: 100 }, () => client.stream(prompt));
  const outcomes = await stage.passing(Promise.allSettled(calls), 10);
  expect(outcomes.every(({ status }) => status === "rejected")).toBe(true);
  expect((stage.server.asked["a"] ?? 0) + (stage.server.asked["b"] ?? 0)).toBe(110);
});

it("D05: passes over a provider that is down, and asks it again after the cooldown, whatever it turned away meanwhile", async () => {
  const counts = async (breaker: CircuitBreaker | FaultyBreaker): Promise<(number | undefined)[]> => {
    stage.server.asked["a"] = stage.server.asked["b"] = 0;
    stage.server.behave("a", { status: 503 }, { status: 503 }, { status: 503 }, HELLO);
    stage.server.behave("b", HELLO);
    const client = stage.client([stage.provider("a", { breaker }), stage.provider("b")]);
    for (let calls = 0; calls < 30; calls += 1) {
      await read(await client.stream(prompt));
      await stage.clock.advance(100);
    }
    return [stage.server.asked["a"], stage.server.asked["b"]];
  };
  // Of thirty calls, three open it and nine are turned away in the second after the third; the others pass.
  expect(await counts(new CircuitBreaker({ failures: 3, cooldownMs: 1_000, clock: stage.clock }))).toEqual([21, 12]);
  expect(await counts(new FaultyBreaker(1_000, stage.clock))).toEqual([3, 30]);
});

it("spends none of the budget on a provider whose breaker is open", async () => {
  stage.server.behave("a", { status: 503 });
  stage.server.behave("b", HELLO);
  const budget = new RetryBudget({ ratio: 0.1, minPerSecond: 0.3, clock: stage.clock });
  const client = stage.client([stage.provider("a"), stage.provider("b")], { budget });
  for (let calls = 0; calls < 50; calls += 1) expect(await read(await client.stream(prompt))).toBe("Hello!");
  expect(stage.server.asked).toEqual({ a: 3, b: 50 });
});
