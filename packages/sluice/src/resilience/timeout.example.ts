// A lookup may take 250 ms. The slow one is told by its signal; its caller has long had an answer.
import { sleep, timeout, TimeoutError } from "sluice";

const quick = timeout(250);

async function look(name: string, takesMs: number): Promise<string> {
  try {
    return await quick.run(async ({ signal }) => {
      await sleep(takesMs, { signal });
      return `${name} found`;
    });
  } catch (error) {
    if (error instanceof TimeoutError) return `${name} took more than ${error.timeoutMs} ms`;
    throw error;
  }
}

console.log(await look("ada", 1));
console.log(await look("bob", 5_000));
console.log(`${quick.stats().timedOut} timed out`);

// Prints:
// ada found
// bob took more than 250 ms
// 1 timed out
