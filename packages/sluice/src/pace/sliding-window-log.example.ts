// A provider counts the requests of the last 200 ms, and so do we: three of them, whenever they come.
import { RateLimiter, slidingWindowLog } from "sluice";

const provider = new RateLimiter({ rule: slidingWindowLog({ count: 3, perMs: 200 }) });

console.log([1, 2, 3, 4].map(() => provider.tryTake()));
await provider.take({ timeoutMs: 1_000 });
console.log("4 sent, once 1 was long enough ago");

// Prints:
// [ true, true, true, false ]
// 4 sent, once 1 was long enough ago
