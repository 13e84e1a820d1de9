// Against the floor: an array of resolvers beside a mutex that is another, which knows neither signals nor timeouts.
import { Condition, Mutex } from "sluice";
import { compare, weigh } from "../harness.ts";

class FloorMutex {
  #isLocked = false;
  readonly #line: (() => void)[] = [];

  acquire(): Promise<void> {
    if (!this.#isLocked) {
      this.#isLocked = true;
      return Promise.resolve();
    }
    return new Promise((resolve) => void this.#line.push(resolve));
  }

  release(): void {
    const next = this.#line.shift();
    if (next === undefined) this.#isLocked = false;
    else next();
  }
}

class Floor {
  readonly #mutex: FloorMutex;
  readonly #line: (() => void)[] = [];

  constructor(mutex: FloorMutex) {
    this.#mutex = mutex;
  }

  async wait(): Promise<void> {
    const woken = new Promise<void>((resolve) => void this.#line.push(resolve));
    this.#mutex.release();
    await woken;
    await this.#mutex.acquire();
  }

  signal(): void {
    this.#line.shift()?.();
  }
}

/** Two take turns, each waking the other: an operation is one wait. */
await compare("condition", 50_000, {
  async sluice(ops) {
    const mutex = new Mutex();
    const [ping, pong] = [new Condition(mutex), new Condition(mutex)];
    const ball = { at: 0 };
    const play = async (own: number, wake: Condition, wait: Condition): Promise<void> => {
      const guard = await mutex.acquire();
      for (let i = 0; i < ops / 2; i += 1) {
        while (ball.at !== own) await wait.wait(guard);
        ball.at = 1 - own;
        wake.signal();
      }
      guard.release();
    };
    await Promise.all([play(0, ping, pong), play(1, pong, ping)]);
  },
  async floor(ops) {
    const mutex = new FloorMutex();
    const [ping, pong] = [new Floor(mutex), new Floor(mutex)];
    const ball = { at: 0 };
    const play = async (own: number, wake: Floor, wait: Floor): Promise<void> => {
      await mutex.acquire();
      for (let i = 0; i < ops / 2; i += 1) {
        while (ball.at !== own) await wait.wait();
        ball.at = 1 - own;
        wake.signal();
      }
      mutex.release();
    };
    await Promise.all([play(0, ping, pong), play(1, pong, ping)]);
  },
});

await weigh("condition-waiter", 50_000, {
  async sluice(count) {
    const mutex = new Mutex();
    const condition = new Condition(mutex);
    for (let i = 0; i < count; i += 1) void condition.wait(await mutex.acquire());
    return condition;
  },
  async floor(count) {
    const mutex = new FloorMutex();
    const condition = new Floor(mutex);
    for (let i = 0; i < count; i += 1) {
      await mutex.acquire();
      void condition.wait();
    }
    return condition;
  },
});
