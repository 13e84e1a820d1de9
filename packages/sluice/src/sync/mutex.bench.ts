// Against the floor: a flag and an array of resolvers, which knows neither signals nor timeouts nor who holds it.
import { compare } from "../../../../bench/harness.ts";
import { Mutex } from "./mutex.ts";

class Floor {
  #locked = false;
  readonly #line: (() => void)[] = [];

  acquire(): Promise<void> {
    if (this.#locked) return new Promise((resolve) => void this.#line.push(resolve));
    this.#locked = true;
    return Promise.resolve();
  }

  release(): void {
    const next = this.#line.shift();
    if (next === undefined) this.#locked = false;
    else next();
  }
}

const nothing = (): void => {};

await compare("mutex-run", 200_000, {
  async Mutex(ops) {
    const mutex = new Mutex();
    for (let i = 0; i < ops; i += 1) await mutex.run(nothing);
  },
  /** What `reentry: "throw"` adds. */
  async reentry(ops) {
    const mutex = new Mutex({ reentry: "throw" });
    for (let i = 0; i < ops; i += 1) await mutex.run(nothing);
  },
  async floor(ops) {
    const mutex = new Floor();
    for (let i = 0; i < ops; i += 1) {
      await mutex.acquire();
      try {
        nothing();
      } finally {
        mutex.release();
      }
    }
  },
});
