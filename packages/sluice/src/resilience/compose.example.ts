// A call to a shop's stock service that copes with a slow, a failing and an overloaded one.
import { CircuitBreaker, compose, retry, Semaphore, timeout } from "sluice";
import { VirtualClock } from "sluice/testing";

const clock = new VirtualClock(); // in real life, leave it out
const breaker = new CircuitBreaker({ failures: 4, clock });
const stock = compose(
  timeout(10_000, { clock }), // the whole of it
  retry({ retries: 3, clock, random: () => 0.5 }),
  breaker,
  timeout(1_000, { clock }), // one attempt
  new Semaphore(8),
);

let failures = 2;
const run = stock.run(({ attempt, idempotencyKey, signal }) => {
  console.log(`attempt ${attempt} at ${clock.now()} ms, key of ${idempotencyKey.length} letters, ${signal.aborted}`);
  if ((failures -= 1) >= 0) throw Object.assign(new Error("unavailable"), { status: 503 });
  return "12 in stock";
});
await clock.runToIdle();
console.log(await run);

failures = Infinity;
for (let n = 0; n < 2; n += 1) {
  const failed = stock.run(() => Promise.reject(Object.assign(new Error("unavailable"), { status: 503 })));
  const told = failed.catch((error: Error) => console.log(error.message));
  await clock.runToIdle();
  await told;
}

// A limit around the retry would hold its slot while the retry waits.
const wrong = compose(new Semaphore(8), retry());
for (const { failureMode, evidence, remedy } of wrong.problems) console.log(`${failureMode} ${evidence}; ${remedy}`);

// Prints:
// attempt 1 at 0 ms, key of 36 letters, false
// attempt 2 at 50 ms, key of 36 letters, false
// attempt 3 at 150 ms, key of 36 letters, false
// 12 in stock
// unavailable
// the circuit is open for another 30000 ms
// F10.5 semaphore around retry: it keeps its slot while the retry waits for its next attempt; put the limit inside the retry
