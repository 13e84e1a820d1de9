// Two providers that stream. The second is asked when the first fails, or has not sent a token for two seconds; the
// race is decided by the first token, and who won goes on to stream.
import { failover, firstChunk, sleep } from "sluice";

const providers = failover(
  [
    { name: "first", tokens: [] },
    { name: "second", tokens: ["Hello", " from", " afar"] },
  ],
  { hedgeAfterMs: 2_000 },
);

async function* stream(tokens: readonly string[], signal: AbortSignal): AsyncGenerator<string> {
  if (tokens.length === 0) throw new Error("is down");
  for (const token of tokens) {
    await sleep(1, { signal });
    yield token;
  }
}

const answer = await providers.run(({ target, signal }) => {
  console.log(`asks the ${target.name}`);
  return firstChunk(stream(target.tokens, signal), { signal });
});
let text = "";
for await (const token of answer) text += token;
console.log(text);

// Prints:
// asks the first
// asks the second
// Hello from afar
