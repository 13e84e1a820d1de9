// Against the floor: a Map of tokens and times, which forgets no key, knows no line and checks nothing.
import { compare, weigh } from "../../../../bench/harness.ts";
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { RateLimiter } from "./rate-limiter.ts";

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

const options = { count: COUNT, perMs: PER_MS, burst: COUNT, maxKeys: Infinity };
const keys = Array.from({ length: 100_000 }, (_, user) => `user-${user}`);

await compare("rate-limiter-first", keys.length, {
  sluice(ops) {
    const limiter = new RateLimiter(options);
    for (let i = 0; i < ops; i += 1) limiter.tryTake(keys[i]);
  },
  floor(ops) {
    const limiter = new Floor();
    for (let i = 0; i < ops; i += 1) limiter.tryTake(keys[i] ?? "");
  },
});

const warm = { sluice: new RateLimiter(options), floor: new Floor() };
for (const key of keys) for (const limiter of Object.values(warm)) limiter.tryTake(key);

await compare("rate-limiter-touch", 500_000, {
  sluice(ops) {
    for (let i = 0; i < ops; i += 1) warm.sluice.tryTake(keys[(i * 7_919) % keys.length]);
  },
  floor(ops) {
    for (let i = 0; i < ops; i += 1) warm.floor.tryTake(keys[(i * 7_919) % keys.length] ?? "");
  },
});

await weigh("rate-limiter-key", keys.length, {
  sluice(count) {
    const limiter = new RateLimiter(options);
    for (const key of keys.slice(0, count)) limiter.tryTake(key);
    return limiter;
  },
  floor(count) {
    const limiter = new Floor();
    for (const key of keys.slice(0, count)) limiter.tryTake(key);
    return limiter;
  },
});

/** Its timers never fire, and don't keep the program alive. */
const still: Clock = { ...systemClock, setTimer: () => ({ cancel: () => {} }) };

await weigh("rate-limiter-waiter", 100_000, {
  sluice(count) {
    const limiter = new RateLimiter({ count: 1, perMs: 1_000, clock: still });
    for (let i = 0; i <= count; i += 1) void limiter.take("user");
    return limiter;
  },
  floor(count) {
    const line: (() => void)[] = [];
    for (let i = 0; i < count; i += 1) void new Promise<void>((resolve) => void line.push(resolve));
    return line;
  },
});
