// Against the floor: tokens and the time of the last, which knows no line and checks nothing.
import { compare, weigh } from "../../../../bench/harness.ts";
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { RateLimiter } from "./rate-limiter.ts";

class Floor {
  #tokens: number;
  #at = performance.now();
  readonly #count: number;
  readonly #perMs: number;

  constructor(count: number, perMs: number) {
    this.#tokens = this.#count = count;
    this.#perMs = perMs;
  }

  tryTake(): boolean {
    const now = performance.now();
    this.#tokens = Math.min(this.#count, this.#tokens + ((now - this.#at) * this.#count) / this.#perMs);
    this.#at = now;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}

await compare("rate-limiter-try", 2_000_000, {
  sluice(ops) {
    const limiter = new RateLimiter({ count: ops, perMs: 60_000, burst: ops });
    for (let i = 0; i < ops; i += 1) limiter.tryTake();
  },
  floor(ops) {
    const limiter = new Floor(ops, 60_000);
    for (let i = 0; i < ops; i += 1) limiter.tryTake();
  },
});

/** Its timers never fire, and don't keep the program alive. */
const still: Clock = { ...systemClock, setTimer: () => ({ cancel: () => {} }) };

await weigh("rate-limiter-waiter", 100_000, {
  sluice(count) {
    const limiter = new RateLimiter({ count: 1, perMs: 1_000, clock: still });
    for (let i = 0; i <= count; i += 1) void limiter.take();
    return limiter;
  },
  floor(count) {
    const line: (() => void)[] = [];
    for (let i = 0; i < count; i += 1) void new Promise<void>((resolve) => void line.push(resolve));
    return line;
  },
});
