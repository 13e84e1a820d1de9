import { setImmediate as turn } from "node:timers/promises";
import { CircuitBreaker } from "sluice";
import { afterEach, beforeEach, expect, it } from "vitest";
import { HELLO, never, prompt, read, Stage } from "./llm-client.stage.ts";

let stage: Stage;

beforeEach(async () => {
  stage = await Stage.open();
});
afterEach(() => stage.server.stop());

it("hands on each token as it comes", async () => {
  const rest = Promise.withResolvers<void>();
  stage.server.behave("a", { tokens: ["Hel"], rest: rest.promise, more: ["lo", "!"] });
  const stream = await stage.client([stage.provider("a")]).stream(prompt);
  expect(await stream.next()).toEqual({ done: false, value: "Hel" });
  rest.resolve();
  expect(await read(stream)).toBe("lo!");
  expect(await (await stage.asked("a")).closed).toBe("whole");
  await turn();
  expect(stage.clock.timers).toBe(0);
});

it("asks the second when the first is slow to begin, and ends the one that comes too late", async () => {
  stage.server.behave("a", { until: never });
  stage.server.behave("b", HELLO);
  const result = stage.client([stage.provider("a"), stage.provider("b")], { hedgeAfterMs: 2_000 }).stream(prompt);
  const slow = await stage.asked("a");
  await stage.clock.advance(1_999);
  expect(stage.server.asked).toEqual({ a: 1 });
  await stage.clock.advance(1);
  const quick = await stage.asked("b");
  const stream = await result;
  expect(await slow.closed).toBe("cut");
  expect([stream.from, await read(stream)]).toEqual(["b", "Hello!"]);
  expect(await quick.closed).toBe("whole");
});

it("never aborts the stream that won, though the other was asked meanwhile", async () => {
  const [begin, rest] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  stage.server.behave("a", { until: begin.promise, tokens: ["Hel"], rest: rest.promise, more: ["lo", "!"] });
  stage.server.behave("b", { until: never });
  const result = stage.client([stage.provider("a"), stage.provider("b")], { hedgeAfterMs: 2_000 }).stream(prompt);
  const first = await stage.asked("a");
  await stage.clock.advance(2_000);
  const second = await stage.asked("b");
  begin.resolve();
  const stream = await result;
  expect(await second.closed).toBe("cut");
  rest.resolve();
  expect([stream.from, await read(stream)]).toEqual(["a", "Hello!"]);
  expect(await first.closed).toBe("whole");
});

it("gives up a provider that says nothing at all, and counts it as a failure", async () => {
  stage.server.behave("a", { until: never });
  stage.server.behave("b", HELLO);
  const breaker = new CircuitBreaker({ failures: 1, clock: stage.clock });
  const providers = [stage.provider("a", { firstTokenMs: 1_000, breaker }), stage.provider("b")];
  const result = stage.client(providers, { hedgeAfterMs: Infinity }).stream(prompt);
  const silent = await stage.asked("a");
  await stage.clock.advance(1_000);
  expect(await silent.closed).toBe("cut");
  expect(await read(await result)).toBe("Hello!");
  expect(breaker.state).toBe("open");
});

it.each([
  ["hangs", { name: "TimeoutError" }],
  ["is reset", { message: "terminated" }],
  ["breaks off as if it were the end", { name: "TruncatedError" }],
] as const)("tells the reader of a stream that %s in the middle, and counts it as a failure", async (how, error) => {
  const end = how === "hangs" ? "hang" : how === "is reset" ? "reset" : "break off";
  const release = Promise.withResolvers<void>();
  stage.server.behave("a", { tokens: ["Hel"], rest: release.promise, end });
  const breaker = new CircuitBreaker({ failures: 1, clock: stage.clock });
  const stream = await stage.client([stage.provider("a", { breaker }), stage.provider("b")]).stream(prompt);
  const exchange = await stage.asked("a");
  expect(await stream.next()).toMatchObject({ value: "Hel" });
  release.resolve();
  const failed = expect(stream.next()).rejects.toMatchObject(error);
  if (end === "hang") {
    await stage.clock.advance(4_999);
    expect(breaker.state).toBe("closed");
    await stage.clock.advance(1);
  }
  await failed;
  await exchange.closed;
  await turn();
  expect([breaker.state, stage.server.asked, stage.clock.timers]).toEqual(["open", { a: 1 }, 0]); // not asked again: words were said
});

it.each([
  ["500", { status: 500 }],
  ["a reset before the first token", { end: "reset" }],
  ["an end before the first token", { tokens: [], end: "break off" }],
] as const)("goes on to the second after %s", async (_, behaviour) => {
  stage.server.behave("a", behaviour);
  stage.server.behave("b", HELLO);
  const stream = await stage.client([stage.provider("a"), stage.provider("b")]).stream(prompt);
  expect([stream.from, await read(stream)]).toEqual(["b", "Hello!"]);
});

it("asks nobody else what is the caller's own fault", async () => {
  stage.server.behave("a", { status: 400 });
  await expect(stage.client([stage.provider("a"), stage.provider("b")]).stream(prompt)).rejects.toMatchObject({
    status: 400,
  });
  expect(stage.server.asked).toEqual({ a: 1 });
});

it("after a 429 leaves the provider alone for as long as it says, and asks it for half as much", async () => {
  stage.server.behave("a", { status: 429, retryAfter: "20" }, HELLO);
  stage.server.behave("b", HELLO);
  const limited = stage.provider("a");
  const client = stage.client([limited, stage.provider("b")], { hedgeAfterMs: 1_000 });
  expect([await read(await client.stream(prompt)), limited.rate.count]).toEqual(["Hello!", 500_000]);
  await stage.clock.advance(18_999);
  const second = client.stream(prompt);
  await stage.clock.advance(1_000);
  expect(await read(await second)).toBe("Hello!");
  expect(stage.server.asked).toEqual({ a: 1, b: 2 });
  await stage.clock.advance(1);
  expect((await stage.client([limited]).stream(prompt)).from).toBe("a");
});

it("asks for no more tokens in a minute than are allowed, by their estimate, and waits for none that come too late", async () => {
  stage.server.behave("a", HELLO);
  const client = stage.client([stage.provider("a", { tokensPerMinute: 250 })], { deadlineMs: 30_000 });
  await read(await client.stream(prompt));
  await read(await client.stream(prompt));
  const third = client.stream(prompt); // 50 tokens are left, the other 50 take 12 s
  await stage.clock.advance(11_999);
  expect(stage.server.asked).toEqual({ a: 2 });
  await stage.clock.advance(1);
  await read(await third);
  await expect(client.stream({ ...prompt, maxTokens: 203 })).rejects.toMatchObject({
    errors: [{ name: "RateLimitedError", retryAfterMs: 49_440 }],
  });
});
