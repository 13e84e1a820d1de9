// Two mirrors of one file. One connects and then sends nothing: what decides is the first chunk, not the connection. Who
// has it goes on to stream, and the other one is closed.
import { firstChunk, hedge, sleep } from "sluice";

async function* download(mirror: number, signal: AbortSignal): AsyncGenerator<string> {
  try {
    console.log(`mirror ${mirror} connects`);
    if (mirror === 1) await sleep(60_000, { signal });
    for (const part of ["one", "two", "three"]) yield `${part} of mirror ${mirror}`;
  } finally {
    console.log(`mirror ${mirror} is closed`);
  }
}

const mirrors = hedge({ hedgeAfterMs: 20 });
const parts = await mirrors.run(({ attempt, signal }) => firstChunk(download(attempt, signal), { signal }));

for await (const part of parts) {
  console.log(part);
  if (part.startsWith("two")) break; // enough: which cancels the stream
}

// A body of `fetch` will do as well.
const { body } = new Response("all of it");
if (body !== null) for await (const chunk of await firstChunk(body)) console.log(new TextDecoder().decode(chunk));

// An end before any chunk is a first chunk too, and a failure before is the failure of the attempt.
const nothing = await firstChunk(new ReadableStream({ start: (controller) => controller.close() }));
console.log(await nothing.next());

// Prints:
// mirror 1 connects
// mirror 2 connects
// mirror 1 is closed
// one of mirror 2
// two of mirror 2
// mirror 2 is closed
// all of it
// { value: undefined, done: true }
