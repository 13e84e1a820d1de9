import { setImmediate as turn } from "node:timers/promises";
import { CircuitBreaker, Deadline } from "sluice";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { LlmClient, LlmClientOptions } from "./llm-client.ts";
import { never, prompt, Stage } from "./llm-client.stage.ts";

const left = new Error("the caller left");

let stage: Stage;
let breaker: CircuitBreaker;
let caller: AbortController;

beforeEach(async () => {
  stage = await Stage.open();
  breaker = new CircuitBreaker({ failures: 1, clock: stage.clock });
  caller = new AbortController();
});
afterEach(() => stage.server.stop());

function clientOf(names: readonly string[], options: LlmClientOptions = {}): LlmClient {
  const providers = names.map((name) => stage.provider(name, { tokensPerMinute: 100, breaker }));
  return stage.client(providers, options);
}

/** Nothing goes on: no request, no timer, no call that the breaker waits for, and none of it held against a provider. */
async function expectSilence(asked: Record<string, number>): Promise<void> {
  await turn();
  expect([stage.clock.timers, breaker.stats().running, breaker.state]).toEqual([0, 0, "closed"]);
  await stage.clock.advance(600_000);
  expect(stage.server.asked).toEqual(asked);
}

it("ends all that were asked when the caller leaves before the first token", async () => {
  stage.server.behave("a", { until: never });
  stage.server.behave("b", { until: never });
  const result = clientOf(["a", "b"], { hedgeAfterMs: 2_000 }).stream(prompt, { signal: caller.signal });
  const first = await stage.server.exchanges.take();
  await stage.clock.advance(2_000);
  const second = await stage.server.exchanges.take();
  caller.abort(left);
  await expect(result).rejects.toBe(left);
  expect([await first.closed, await second.closed]).toEqual(["cut", "cut"]);
  await expectSilence({ a: 1, b: 1 });
});

it("ends the stream when the caller leaves in the middle, whether or not somebody reads", async () => {
  stage.server.behave("a", { tokens: ["Hel"], end: "hang" });
  const stream = await clientOf(["a"]).stream(prompt, { signal: caller.signal });
  const exchange = await stage.server.exchanges.take();
  caller.abort(left);
  expect(await exchange.closed).toBe("cut");
  await expect(stream.ended).rejects.toBe(left);
  await expect(stream.next()).rejects.toBe(left);
  await expectSilence({ a: 1 });
});

it("closes the connection when the reader leaves the loop", async () => {
  stage.server.behave("a", { tokens: ["Hel", "lo"], end: "hang" });
  for await (const token of await clientOf(["a"]).stream(prompt)) if (token === "lo") break;
  expect(await (await stage.server.exchanges.take()).closed).toBe("cut");
  await expectSilence({ a: 1 });
});

it("asks nobody after the caller has left while it waited for tokens", async () => {
  stage.server.behave("a", { tokens: ["Hello!"] });
  const client = clientOf(["a"]);
  for await (const _ of await client.stream(prompt));
  const second = client.stream(prompt, { signal: caller.signal });
  await stage.clock.advance(30_000);
  caller.abort(left);
  await expect(second).rejects.toBe(left);
  await expectSilence({ a: 1 });
});

it("asks nobody after the caller has left between two rounds", async () => {
  breaker.mode = "disabled";
  stage.server.behave("a", { status: 503 });
  const result = clientOf(["a"]).stream(prompt, { signal: caller.signal });
  await (
    await stage.server.exchanges.take()
  ).closed;
  while (stage.clock.timers < 1) await turn();
  caller.abort(left);
  await expect(result).rejects.toBe(left);
  await expectSilence({ a: 1 });
});

it("ends with its deadline, which goes on to the last token, and no later than that of its caller", async () => {
  stage.server.behave("a", { tokens: ["Hel"], end: "hang" });
  using outer = Deadline.after(3_000, { clock: stage.clock });
  const stream = await clientOf(["a"], { deadlineMs: 4_000 }).stream(prompt, { within: outer });
  await stream.next();
  const failed = expect(stream.next()).rejects.toMatchObject({ name: "TimeoutError", timeoutMs: 3_000 });
  await stage.clock.advance(2_999);
  expect(breaker.stats().running).toBe(1);
  await stage.clock.advance(1);
  await failed;
  expect(await (await stage.server.exchanges.take()).closed).toBe("cut");
  await expectSilence({ a: 1 });
});

it("begins no round that would end too late", async () => {
  breaker.mode = "disabled";
  stage.server.behave("a", { status: 503 });
  const result = clientOf(["a"], { deadlineMs: 400 }).stream(prompt);
  await expect(result).rejects.toMatchObject({
    name: "DeadlineError",
    neededMs: 500,
    cause: { errors: [{ status: 503 }] },
  });
  await expectSilence({ a: 1 });
});
