// Both sliding windows against the floor: a list of times of which the old ones are dropped.
import { compare, weigh } from "../../../../bench/harness.ts";
import { RateLimiter } from "./rate-limiter.ts";
import { slidingWindowCounter } from "./sliding-window-counter.ts";
import { slidingWindowLog } from "./sliding-window-log.ts";

const COUNT = 1_000;
const PER_MS = 1;

class Floor {
  readonly #times: number[] = [];

  tryTake(): boolean {
    const now = performance.now();
    while (this.#times.length > 0 && (this.#times[0] ?? 0) <= now - PER_MS) this.#times.shift();
    if (this.#times.length >= COUNT) return false;
    this.#times.push(now);
    return true;
  }
}

await compare("sliding-window", 1_000_000, {
  log(ops) {
    const limiter = new RateLimiter({ rule: slidingWindowLog({ count: COUNT, perMs: PER_MS }) });
    for (let i = 0; i < ops; i += 1) limiter.tryTake();
  },
  counter(ops) {
    const limiter = new RateLimiter({ rule: slidingWindowCounter({ count: COUNT, perMs: PER_MS }) });
    for (let i = 0; i < ops; i += 1) limiter.tryTake();
  },
  floor(ops) {
    const limiter = new Floor();
    for (let i = 0; i < ops; i += 1) limiter.tryTake();
  },
});

await weigh("sliding-window-memory", 100, {
  log: (count) => Array.from({ length: count }, () => slidingWindowLog({ count: COUNT, perMs: PER_MS })),
  counter: (count) => Array.from({ length: count }, () => slidingWindowCounter({ count: COUNT, perMs: PER_MS })),
});
