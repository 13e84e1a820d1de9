// A service is down for everybody. Two call sites that share a budget retry one call in ten, and not each of them 3 times.
import { retry, RetryBudget } from "sluice";

const budget = new RetryBudget({ ratio: 0.1, minPerSecond: 0, name: "search", dependency: "search" });
const policies = { byName: retry({ budget, baseMs: 1 }), byTag: retry({ budget, baseMs: 1 }) };

let calls = 0;
function search(): never {
  calls += 1;
  throw Object.assign(new Error("unavailable"), { status: 503 });
}

const requests = Array.from({ length: 1_000 }, (_, id) => policies[id % 2 === 0 ? "byName" : "byTag"].run(search));
const outcomes = await Promise.allSettled(requests);

console.log(`${outcomes.length} requests, ${calls} calls`);
console.log(`${budget.stats().retries} retries, ${budget.stats().refused} refused`);

// Prints:
// 1000 requests, 1100 calls
// 100 retries, 1000 refused
