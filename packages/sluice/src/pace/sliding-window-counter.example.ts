// A million requests a minute are counted in eleven numbers; a place is free again up to a tenth of the window later.
import { RateLimiter, slidingWindowCounter } from "sluice";

const limiter = new RateLimiter({ rule: slidingWindowCounter({ count: 1_000_000, perMs: 60_000 }) });

console.log(limiter.tryTake(999_999), limiter.tryTake(), limiter.tryTake());
console.log("again within 66 s:", limiter.retryAfterMs() <= 66_000);

// Prints:
// true true false
// again within 66 s: true
