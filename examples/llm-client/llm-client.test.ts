import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, expect, it } from "vitest";
import { CircuitBreaker, RetryBudget } from "sluice";
import { VirtualClock } from "sluice/testing";
import { FaultyBreaker } from "./faulty-breaker.ts";
import { LlmClient, type LlmClientOptions } from "./llm-client.ts";
import { type Exchange, ModelServer } from "./model-server.ts";
import { Provider, type ProviderOptions } from "./provider.ts";
import type { TokenStream } from "./token-stream.ts";

const prompt = { text: "Say hello.", maxTokens: 97 }; // 100 tokens by the estimate
const HELLO = ["Hel", "lo", "!"];
const never = new Promise<never>(() => {});

let server: ModelServer;
let clock: VirtualClock;

beforeEach(async () => {
  server = await ModelServer.start();
  clock = new VirtualClock();
});
afterEach(() => server.stop());

function provider(name: string, options: Partial<ProviderOptions> = {}): Provider {
  return new Provider(name, server.url(name), { tokensPerMinute: 1_000_000, clock, ...options });
}

function clientOf(providers: readonly Provider[], options: LlmClientOptions = {}): LlmClient {
  return new LlmClient(providers, { clock, random: () => 1, ...options });
}

/** The next request to arrive. */
async function asked(model: string): Promise<Exchange> {
  const exchange = await server.exchanges.take();
  expect(exchange.model).toBe(model);
  return exchange;
}

async function read(stream: TokenStream): Promise<string> {
  let text = "";
  for await (const token of stream) text += token;
  return text;
}

/** Time goes on while what it waits for comes by the network. */
async function passing<T>(result: Promise<T>, stepMs = 100): Promise<T> {
  const state = { isOver: false };
  const over = (): void => void (state.isOver = true);
  result.then(over, over);
  while (!state.isOver) {
    await clock.advance(stepMs);
    await turn();
  }
  return result;
}

it("hands on each token as it comes", async () => {
  const rest = Promise.withResolvers<void>();
  server.behave("a", { tokens: ["Hel"], rest: rest.promise, more: ["lo", "!"] });
  const stream = await clientOf([provider("a")]).stream(prompt);
  expect(await stream.next()).toEqual({ done: false, value: "Hel" });
  rest.resolve();
  expect(await read(stream)).toBe("lo!");
  expect(await (await asked("a")).closed).toBe("whole");
  await turn();
  expect(clock.timers).toBe(0);
});

it("asks the second when the first is slow to begin, and ends the one that comes too late", async () => {
  server.behave("a", { until: never });
  server.behave("b", { tokens: HELLO });
  const result = clientOf([provider("a"), provider("b")], { hedgeAfterMs: 2_000 }).stream(prompt);
  const slow = await asked("a");
  await clock.advance(1_999);
  expect(server.asked).toEqual({ a: 1 });
  await clock.advance(1);
  const quick = await asked("b");
  const stream = await result;
  expect(await slow.closed).toBe("cut");
  expect([stream.from, await read(stream)]).toEqual(["b", "Hello!"]);
  expect(await quick.closed).toBe("whole");
});

it("never aborts the stream that won, though the other was asked meanwhile", async () => {
  const [begin, rest] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  server.behave("a", { until: begin.promise, tokens: ["Hel"], rest: rest.promise, more: ["lo", "!"] });
  server.behave("b", { until: never });
  const result = clientOf([provider("a"), provider("b")], { hedgeAfterMs: 2_000 }).stream(prompt);
  const first = await asked("a");
  await clock.advance(2_000);
  const second = await asked("b");
  begin.resolve();
  const stream = await result;
  expect(await second.closed).toBe("cut");
  rest.resolve();
  expect([stream.from, await read(stream)]).toEqual(["a", "Hello!"]);
  expect(await first.closed).toBe("whole");
});

it("gives up a provider that says nothing at all, and counts it as a failure", async () => {
  server.behave("a", { until: never });
  server.behave("b", { tokens: HELLO });
  const breaker = new CircuitBreaker({ failures: 1, clock });
  const providers = [provider("a", { firstTokenMs: 1_000, breaker }), provider("b")];
  const result = clientOf(providers, { hedgeAfterMs: Infinity }).stream(prompt);
  const silent = await asked("a");
  await clock.advance(1_000);
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
  server.behave("a", { tokens: ["Hel"], rest: release.promise, end });
  const breaker = new CircuitBreaker({ failures: 1, clock });
  const stream = await clientOf([provider("a", { breaker }), provider("b")]).stream(prompt);
  const exchange = await asked("a");
  expect(await stream.next()).toMatchObject({ value: "Hel" });
  release.resolve();
  const next = stream.next();
  if (end === "hang") {
    await clock.advance(4_999);
    expect(breaker.state).toBe("closed");
    await clock.advance(1);
  }
  await expect(next).rejects.toMatchObject(error);
  await exchange.closed;
  await turn();
  expect([breaker.state, server.asked, clock.timers]).toEqual(["open", { a: 1 }, 0]); // not asked again: words were said
});

it.each([
  ["500", { status: 500 }],
  ["a reset before the first token", { end: "reset" }],
  ["an end before the first token", { tokens: [], end: "break off" }],
] as const)("goes on to the second after %s", async (_, behaviour) => {
  server.behave("a", behaviour);
  server.behave("b", { tokens: HELLO });
  const stream = await clientOf([provider("a"), provider("b")]).stream(prompt);
  expect([stream.from, await read(stream)]).toEqual(["b", "Hello!"]);
});

it("asks nobody else what is the caller's own fault", async () => {
  server.behave("a", { status: 400 });
  await expect(clientOf([provider("a"), provider("b")]).stream(prompt)).rejects.toMatchObject({ status: 400 });
  expect(server.asked).toEqual({ a: 1 });
});

it("after a 429 leaves the provider alone for as long as it says, and asks it for half as much", async () => {
  server.behave("a", { status: 429, retryAfter: "20" }, { tokens: HELLO });
  server.behave("b", { tokens: HELLO });
  const limited = provider("a");
  const client = clientOf([limited, provider("b")], { hedgeAfterMs: 1_000 });
  expect([await read(await client.stream(prompt)), limited.rate.count]).toEqual(["Hello!", 500_000]);
  await clock.advance(18_999);
  const second = client.stream(prompt);
  await clock.advance(1_000);
  expect(await read(await second)).toBe("Hello!");
  expect(server.asked).toEqual({ a: 1, b: 2 });
  await clock.advance(1);
  expect((await clientOf([limited]).stream(prompt)).from).toBe("a");
});

it("takes no provider for broken that is only limited", async () => {
  server.behave("a", { status: 429 });
  const limited = provider("a");
  for (let calls = 0; calls < 5; calls += 1)
    await expect(passing(clientOf([limited]).stream(prompt))).rejects.toThrow();
  server.behave("a", { tokens: HELLO });
  expect(await read(await clientOf([limited]).stream(prompt))).toBe("Hello!");
});

it("asks for no more tokens in a minute than are allowed, by their estimate, and waits for none that come too late", async () => {
  server.behave("a", { tokens: HELLO });
  const client = clientOf([provider("a", { tokensPerMinute: 250 })], { deadlineMs: 30_000 });
  await read(await client.stream(prompt));
  await read(await client.stream(prompt));
  const third = client.stream(prompt); // 50 tokens are left, the other 50 take 12 s
  await clock.advance(11_999);
  expect(server.asked).toEqual({ a: 2 });
  await clock.advance(1);
  await read(await third);
  await expect(client.stream({ ...prompt, maxTokens: 203 })).rejects.toMatchObject({
    errors: [{ name: "RateLimitedError", retryAfterMs: 49_440 }],
  });
});

it("tries another round when all have failed and one may do better, and only then", async () => {
  server.behave("a", { status: 503 }, { tokens: HELLO });
  server.behave("b", { status: 500 });
  const stream = await passing(clientOf([provider("a"), provider("b")]).stream(prompt));
  expect([stream.from, server.asked]).toEqual(["a", { a: 2, b: 1 }]);
  server.behave("a", { status: 500 });
  await expect(passing(clientOf([provider("a"), provider("b")]).stream(prompt))).rejects.toThrow(
    "all 2 attempts failed",
  );
  expect(server.asked).toEqual({ a: 3, b: 2 });
});

it("asks providers that are down a tenth more than there are calls, however often each may try", async () => {
  server.behave("a", { status: 503 });
  server.behave("b", { status: 503 });
  const breaker = new CircuitBreaker({ clock });
  breaker.mode = "disabled";
  const budget = new RetryBudget({ ratio: 0.1, minPerSecond: 0, clock });
  const client = clientOf([provider("a", { breaker }), provider("b", { breaker })], { budget });
  const calls = Array.from({ length: 100 }, () => client.stream(prompt));
  const outcomes = await passing(Promise.allSettled(calls), 10);
  expect(outcomes.every(({ status }) => status === "rejected")).toBe(true);
  expect((server.asked["a"] ?? 0) + (server.asked["b"] ?? 0)).toBe(110);
});

it("D05: passes over a provider that is down, and asks it again after the cooldown, whatever it turned away meanwhile", async () => {
  const counts = async (breaker: CircuitBreaker | FaultyBreaker): Promise<(number | undefined)[]> => {
    server.asked["a"] = server.asked["b"] = 0;
    server.behave("a", { status: 503 }, { status: 503 }, { status: 503 }, { tokens: HELLO });
    server.behave("b", { tokens: HELLO });
    const client = clientOf([provider("a", { breaker }), provider("b")]);
    for (let calls = 0; calls < 30; calls += 1) {
      await read(await client.stream(prompt));
      await clock.advance(100);
    }
    return [server.asked["a"], server.asked["b"]];
  };
  // Of thirty calls, three open it and nine are turned away in the second after the third; the others pass.
  expect(await counts(new CircuitBreaker({ failures: 3, cooldownMs: 1_000, clock }))).toEqual([21, 12]);
  expect(await counts(new FaultyBreaker(1_000, clock))).toEqual([3, 30]);
});

it("spends none of the budget on a provider whose breaker is open", async () => {
  server.behave("a", { status: 503 });
  server.behave("b", { tokens: HELLO });
  const budget = new RetryBudget({ ratio: 0.1, minPerSecond: 0.3, clock });
  const client = clientOf([provider("a"), provider("b")], { budget });
  for (let calls = 0; calls < 50; calls += 1) expect(await read(await client.stream(prompt))).toBe("Hello!");
  expect(server.asked).toEqual({ a: 3, b: 50 });
});
