// Against the floor: a counter and an array of starters, which knows neither signals nor timeouts nor bounds nor ages, and
// loses the async context of whoever submits.
import { compare, weigh } from "../../../../bench/harness.ts";
import { Limiter } from "./limiter.ts";

const CONCURRENCY = 8;
const WAVE = 64;

class Floor {
  #free = CONCURRENCY;
  readonly #line: (() => void)[] = [];
  #head = 0;

  run<T>(fn: () => PromiseLike<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const start = (): void => {
        const result = fn();
        result.then(this.#giveBack, this.#giveBack);
        result.then(resolve, reject);
      };
      if (this.#free === 0) this.#line.push(start);
      else {
        this.#free -= 1;
        start();
      }
    });
  }

  readonly #giveBack = (): void => {
    const start = this.#line[this.#head];
    if (start === undefined) {
      this.#free += 1;
      this.#line.length = this.#head = 0;
    } else {
      this.#head += 1;
      start();
    }
  };
}

const ready = Promise.resolve(1);
const work = (): Promise<number> => ready;

await compare("limiter-free-slot", 200_000, {
  async sluice(ops) {
    const limit = new Limiter(CONCURRENCY);
    for (let i = 0; i < ops; i += 1) await limit.run(work);
  },
  async floor(ops) {
    const limit = new Floor();
    for (let i = 0; i < ops; i += 1) await limit.run(work);
  },
});

await compare("limiter-waves", 200_000, {
  async sluice(ops) {
    const limit = new Limiter(CONCURRENCY);
    for (let i = 0; i < ops; i += WAVE) await Promise.all(Array.from({ length: WAVE }, () => limit.run(work)));
  },
  async floor(ops) {
    const limit = new Floor();
    for (let i = 0; i < ops; i += WAVE) await Promise.all(Array.from({ length: WAVE }, () => limit.run(work)));
  },
});

await compare("limiter-deep", 100_000, {
  async sluice(ops) {
    const limit = new Limiter(CONCURRENCY);
    await Promise.all(Array.from({ length: ops }, () => limit.run(work)));
  },
  async floor(ops) {
    const limit = new Floor();
    await Promise.all(Array.from({ length: ops }, () => limit.run(work)));
  },
});

const { signal } = new AbortController();

await compare("limiter-signal", 200_000, {
  async sluice(ops) {
    const limit = new Limiter(CONCURRENCY);
    for (let i = 0; i < ops; i += 1) await limit.run(work, { signal });
  },
  async floor(ops) {
    const limit = new Floor();
    for (let i = 0; i < ops; i += 1) await limit.run(work);
  },
});

const forever = new Promise<number>(() => {});
const never = (): Promise<number> => forever;

await weigh("limiter-waiter", 100_000, {
  sluice(count) {
    const limit = new Limiter(1);
    for (let i = 0; i < count; i += 1) void limit.run(never);
    return limit;
  },
  floor(count) {
    const limit = new Floor();
    for (let i = 0; i < count; i += 1) void limit.run(never);
    return limit;
  },
});
