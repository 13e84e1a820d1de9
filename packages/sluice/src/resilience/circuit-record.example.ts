// A function that lives for one request can't learn from many. What its breaker knows is kept in a store between them, so
// that the next one doesn't ask a service that has just been found down.
import { CircuitBreaker, type CircuitRecord, restoreCircuit, saveCircuit } from "sluice";
import { VirtualClock } from "sluice/testing";

const clock = new VirtualClock(); // in real life, leave it out
const store = new Map<string, string>(); // a database, say

async function handle(call: () => string): Promise<string> {
  const breaker = new CircuitBreaker({ failures: 2, cooldownMs: 30_000, clock });
  const saved = store.get("mail");
  if (saved !== undefined) restoreCircuit(breaker, JSON.parse(saved) as CircuitRecord, clock);
  const before = breaker.state;
  const answer = await breaker.run(call).catch((error: Error) => error.name);
  store.set("mail", JSON.stringify(saveCircuit(breaker, clock)));
  return `${before} > ${breaker.state}: ${answer}`;
}

function down(): never {
  throw new Error("connection refused");
}

console.log(await handle(down));
console.log(await handle(down));
await clock.advance(20_000);
console.log(await handle(() => "sent"));
await clock.advance(10_000);
console.log(await handle(() => "sent"));
console.log(store.get("mail"));

// A record of another kind changes nothing.
try {
  restoreCircuit(new CircuitBreaker(), { ...JSON.parse(store.get("mail") ?? ""), counts: [1, 2] }, clock);
} catch (error) {
  console.log(String(error));
}

// Prints:
// closed > closed: Error
// closed > open: Error
// open > open: CircuitOpenError
// half-open > closed: sent
// {"version":1,"savedAt":30000,"state":"closed","retryAfterMs":0,"openings":0,"failures":0,"counts":null}
// RangeError: counts must be null: the record is of another kind of trip
