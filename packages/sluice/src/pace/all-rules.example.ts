// At most 5 at once, 5 more each second, and no more than 8 an hour: what one of them refuses, none is charged for.
import { allRules, RateLimiter, slidingWindowLog, tokenBucket } from "sluice";

const second = tokenBucket({ count: 5, perMs: 1_000, burst: 5 });
const hour = slidingWindowLog({ count: 8, perMs: 3_600_000 });
const limiter = new RateLimiter({ rule: allRules(second, hour) });

console.log(limiter.tryTake(5), limiter.tryTake(), limiter.retryAfterMs() <= 200);
await limiter.take({ cost: 3 });
console.log(limiter.tryTake(), limiter.retryAfterMs() > 3_590_000);

// Prints:
// true false true
// false true
