// A payment over a shaky line: each attempt has 200 ms, all of them together 2 s, and the bank can tell a repetition.
import { DeadlineError, retry, sleep, timeout } from "sluice";

const perAttempt = timeout(200);
const policy = retry({ retries: 3, baseMs: 10, deadline: 2_000 });

let calls = 0;
async function pay(key: string, signal: AbortSignal): Promise<string> {
  calls += 1;
  if (calls === 1) await sleep(10_000, { signal }); // hangs
  if (calls === 2) throw Object.assign(new Error("busy"), { status: 503, retryAfterMs: 50 });
  return `paid once for ${key}`;
}

const receipt = await policy.run(
  ({ attempt, idempotencyKey, signal }) => {
    console.log(`attempt ${attempt}`);
    return perAttempt.run((inner) => pay(idempotencyKey, inner.signal), { signal });
  },
  { idempotencyKey: "order-7" },
);
console.log(receipt);

// What would take longer than there is time is not begun.
const refused = retry({ deadline: 2_000 }).run(() => {
  throw Object.assign(new Error("come back later"), { status: 429, retryAfterMs: 60_000 });
});
await refused.catch((error: unknown) => {
  if (error instanceof DeadlineError) console.log(`needs ${error.neededMs} ms`, String(error.cause));
});

// Prints:
// attempt 1
// attempt 2
// attempt 3
// paid once for order-7
// needs 60000 ms Error: come back later
