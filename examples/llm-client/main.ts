// Two providers, of which the first has a bad day: each time something else goes wrong, and the caller sees what is left.
import { LlmClient, type LlmClientOptions } from "./llm-client.ts";
import { type Behaviour, type Exchange, ModelServer } from "./model-server.ts";
import { Provider } from "./provider.ts";

const ANSWER = { tokens: ["Wait", " for", " nobody", "."] } satisfies Behaviour;
const never = new Promise<never>(() => {});

const server = await ModelServer.start();
const stop = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const)
  process.once(name, () => stop.abort(new Error(`stopped by ${name}`)));

try {
  await ask("all is well", ANSWER);
  await ask("slow to begin", { until: never }, { hedgeAfterMs: 100 });
  await ask("answers 500", { status: 500 });
  await ask("resets the connection", { end: "reset" });
  await ask("has had enough", { status: 429, retryAfter: "60" });
  await ask("hangs in the middle", { tokens: ["Wait", " for"], end: "hang" });
  await ask("breaks off", { tokens: ["Wait", " for"], end: "break off" });

  server.behave("second", { status: 503 }, ANSWER);
  await ask("both are busy for a moment", { status: 503 });
  server.behave("second", ANSWER);
  await leave();
  await wearOut();
} finally {
  await server.stop();
}

/** Each time with providers that know nothing of the last. */
function clientOf(options: LlmClientOptions = {}): LlmClient {
  const limits = { tokensPerMinute: 90_000, stallMs: 200 };
  const providers = ["first", "second"].map((name) => new Provider(name, server.url(name), limits));
  return new LlmClient(providers, { hedgeAfterMs: 10_000, ...options });
}

async function ask(title: string, first: Behaviour, options: LlmClientOptions = {}): Promise<void> {
  server.behave("first", first);
  if (server.asked["second"] === undefined) server.behave("second", ANSWER);
  const answer = await say(clientOf(options), stop.signal);
  const closed = await Promise.all(server.exchanges.pollBatch(10).map(fateOf));
  console.log(`${title}: ${answer} (${closed.join(", ")})`);
}

async function say(client: LlmClient, signal: AbortSignal, onToken = (): void => {}): Promise<string> {
  let text = "";
  let from = "nobody";
  try {
    const stream = await client.stream({ text: "What is patience?", maxTokens: 100 }, { signal });
    from = stream.from;
    for await (const token of stream) {
      text += token;
      onToken();
    }
    return `"${text}" by the ${from}`;
  } catch (error) {
    return `"${text}" by the ${from}, then ${(error as Error).name}: ${(error as Error).message}`;
  }
}

async function fateOf({ model, closed }: Exchange): Promise<string> {
  return `${model} ${await closed}`;
}

async function leave(): Promise<void> {
  const caller = new AbortController();
  server.behave("first", { tokens: ["Wait"], end: "hang" });
  const answer = await say(clientOf(), caller.signal, () => caller.abort(new Error("the caller left")));
  const [exchange] = server.exchanges.pollBatch(1);
  console.log(`the caller leaves: ${answer} (${exchange === undefined ? "not asked" : await fateOf(exchange)})`);
}

async function wearOut(): Promise<void> {
  server.behave("first", { status: 500 });
  server.asked["first"] = server.asked["second"] = 0;
  const client = clientOf();
  for (let calls = 0; calls < 20; calls += 1) await say(client, stop.signal);
  console.log(`of 20 calls the first saw ${server.asked["first"]}, and the second all ${server.asked["second"]}`);
}

// Prints:
// all is well: "Wait for nobody." by the first (first whole)
// slow to begin: "Wait for nobody." by the second (first cut, second whole)
// answers 500: "Wait for nobody." by the second (first whole, second whole)
// resets the connection: "Wait for nobody." by the second (first cut, second whole)
// has had enough: "Wait for nobody." by the second (first whole, second whole)
// hangs in the middle: "Wait for" by the first, then TimeoutError: timed out after 200 ms (first cut)
// breaks off: "Wait for" by the first, then TruncatedError: the answer ended before its end (first whole)
// both are busy for a moment: "Wait for nobody." by the second (first whole, second whole, first whole, second whole)
// the caller leaves: "Wait" by the first, then Error: the caller left (first cut)
// of 20 calls the first saw 3, and the second all 20
