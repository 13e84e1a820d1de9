// Against the floor: a Map of tokens and times, which forgets no key, knows no line and checks nothing.
import { compare, weigh } from "../../../../bench/harness.ts";
import { KeyedRateLimiter } from "./keyed-rate-limiter.ts";

const COUNT = 5;
const PER_MS = 60_000;

class Floor {
  readonly #buckets = new Map<string, { tokens: number; at: number }>();

  tryTake(key: string): boolean {
    const now = performance.now();
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) this.#buckets.set(key, (bucket = { tokens: COUNT, at: now }));
    bucket.tokens = Math.min(COUNT, bucket.tokens + ((now - bucket.at) * COUNT) / PER_MS);
    bucket.at = now;
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  }
}

const limit = { count: COUNT, perMs: PER_MS, burst: COUNT };
const keys = Array.from({ length: 100_000 }, (_, user) => `user-${user}`);

await compare("keyed-rate-limiter-first", keys.length, {
  sluice(ops) {
    const limiter = new KeyedRateLimiter(limit);
    for (const key of keys.slice(0, ops)) limiter.tryTake(key);
  },
  floor(ops) {
    const limiter = new Floor();
    for (const key of keys.slice(0, ops)) limiter.tryTake(key);
  },
});

const warm = { sluice: new KeyedRateLimiter(limit), floor: new Floor() };
for (const key of keys) for (const limiter of Object.values(warm)) limiter.tryTake(key);

await compare("keyed-rate-limiter-touch", 500_000, {
  sluice(ops) {
    for (let i = 0; i < ops; i += 1) warm.sluice.tryTake(keys[(i * 7_919) % keys.length] ?? "");
  },
  floor(ops) {
    for (let i = 0; i < ops; i += 1) warm.floor.tryTake(keys[(i * 7_919) % keys.length] ?? "");
  },
});

await weigh("keyed-rate-limiter-key", keys.length, {
  sluice(count) {
    const limiter = new KeyedRateLimiter(limit);
    for (const key of keys.slice(0, count)) limiter.tryTake(key);
    return limiter;
  },
  floor(count) {
    const limiter = new Floor();
    for (const key of keys.slice(0, count)) limiter.tryTake(key);
    return limiter;
  },
});
