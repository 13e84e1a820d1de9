// A request has ten seconds. Whatever it calls gets what is left of it, and stops when nothing is.
import { Deadline, sleep } from "sluice";

using request = Deadline.after(10_000);

async function ask(service: string, takesMs: number, deadline: Deadline): Promise<void> {
  // No service may take more than 250 ms, nor more than the request has left.
  using own = Deadline.after(250, { within: deadline });
  const answer = await sleep(takesMs, { signal: own.signal }).then(
    () => "answered",
    (error: Error) => error.message,
  );
  console.log(service, answer);
}

await ask("prices", 1, request);
await ask("stock", 60_000, request);
console.log(request.expired ? "too late" : "in time");

// Prints:
// prices answered
// stock timed out after 250 ms
// in time
