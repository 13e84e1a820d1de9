// A server fails every other call. A count in a row would never open; half of the last ten calls is enough.
import { CircuitBreaker, countWindow, growingCooldown, isolate } from "sluice";

const breaker = new CircuitBreaker({
  trip: countWindow({ size: 10, failureRate: 0.5, minCalls: 6 }),
  cooldown: growingCooldown({ baseMs: 30_000, maxMs: 300_000 }),
  onStateChange: ({ from, to }) => console.log(`${from} > ${to}`),
});

let calls = 0;
while (breaker.state === "closed") {
  calls += 1;
  await breaker.run(() => (calls % 2 === 0 ? Promise.reject(new Error("overloaded")) : "done")).catch(() => {});
}
console.log(`open after ${calls} calls`);

breaker.close();
{
  using _ = isolate(breaker); // while the server is being repaired
  const refused = await breaker.run(() => "done").catch((error: Error) => error.name);
  console.log(`${refused}, though ${breaker.state}`);
}
console.log(await breaker.run(() => "done"));

// Prints:
// closed > open
// open after 6 calls
// open > closed
// CircuitOpenError, though closed
// done
