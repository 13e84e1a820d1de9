/** A completion over HTTP, streamed as server-sent events: a token in each `data` line, and `[DONE]` in the last. */
import { type Clock, HttpStatusError, parseRetryAfter, systemClock } from "sluice";

export interface Prompt {
  readonly text: string;
  /** The answer has no more tokens than this. */
  readonly maxTokens: number;
}

/** What it may cost at most, before anybody has counted: a token has about four letters of English. */
export function estimateTokens({ text, maxTokens }: Prompt): number {
  return Math.ceil(text.length / 4) + maxTokens;
}

/** The answer ended before its end: what has come of it is not all. */
class TruncatedError extends Error {
  override readonly name = "TruncatedError";

  constructor() {
    super("the answer ended before its end");
  }
}

/** Resolves with the tokens once the server has begun to answer, however long the first of them takes. */
export async function openCompletion(
  url: string,
  prompt: Prompt,
  signal: AbortSignal,
  clock: Clock = systemClock,
): Promise<AsyncGenerator<string>> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "text/event-stream" },
    body: JSON.stringify(prompt),
    signal,
  });
  if (response.ok && response.body !== null) return tokensOf(response.body);
  await response.body?.cancel(); // gives its connection back
  throw new HttpStatusError(response, parseRetryAfter(response.headers.get("retry-after"), clock.wallNow()));
}

async function* tokensOf(body: NonNullable<Response["body"]>): AsyncGenerator<string> {
  let isDone = false;
  let rest = "";
  // It reads on after the last token: a connection is used again only when all has been read.
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (!line.startsWith("data: ")) continue;
      const data = line.slice("data: ".length);
      if (data === "[DONE]") isDone = true;
      else yield JSON.parse(data) as string;
    }
  }
  if (!isDone) throw new TruncatedError();
}
