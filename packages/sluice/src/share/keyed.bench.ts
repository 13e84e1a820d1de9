// Against the floor: a map of promise chains, each the tail of its key's line, which knows neither signals nor limits.
import { compare } from "../../../../bench/harness.ts";
import { Semaphore } from "../sync/semaphore.ts";
import { Keyed } from "./keyed.ts";

class Chains {
  readonly #tails = new Map<number, Promise<unknown>>();

  run<T>(key: number, fn: () => T): Promise<T> {
    const done = (this.#tails.get(key) ?? Promise.resolve()).then(fn);
    this.#tails.set(key, done);
    const forget = (): void => {
      if (this.#tails.get(key) === done) this.#tails.delete(key);
    };
    return done.finally(forget);
  }
}

await compare("keyed", 100_000, {
  async Keyed(ops) {
    const keyed = new Keyed<number>(() => new Semaphore(1));
    for (let i = 0; i < ops; i += 1) await keyed.run(i % 64, work);
  },
  async floor(ops) {
    const chains = new Chains();
    for (let i = 0; i < ops; i += 1) await chains.run(i % 64, work);
  },
});

function work(): number {
  return 1;
}
