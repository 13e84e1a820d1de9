// One token for each of many keys, all within their limit.
import { RateLimiterMemory } from "rate-limiter-flexible";
import { RateLimiter } from "sluice";
import { compare, weigh } from "../harness.ts";

const LIMIT = { count: 100, perMs: 600_000, burst: 100, maxKeys: 1_000_000 };
const keys = Array.from({ length: 100_000 }, (_, n) => `user-${n}`);

await compare("rate-limiter", 100_000, {
  sluice(ops) {
    const limiter = new RateLimiter(LIMIT);
    for (let i = 0; i < ops; i += 1) limiter.tryTake(keys[i % keys.length]);
  },
  async "rate-limiter-flexible"(ops) {
    const limiter = new RateLimiterMemory({ points: 100, duration: 0 }); // no expiry, so no timer for each key
    for (let i = 0; i < ops; i += 1) await limiter.consume(keys[i % keys.length] ?? "");
  },
});

await weigh("rate-limiter-key", 100_000, {
  sluice(count) {
    const limiter = new RateLimiter(LIMIT);
    for (let i = 0; i < count; i += 1) limiter.tryTake(keys[i % keys.length]);
    return limiter;
  },
  async "rate-limiter-flexible"(count) {
    const limiter = new RateLimiterMemory({ points: 100, duration: 0 });
    for (let i = 0; i < count; i += 1) await limiter.consume(keys[i % keys.length] ?? "");
    return limiter;
  },
});
