// Against the floor: the same two semaphores, one after the other, by hand and in the right order.
import { compare } from "../../../../bench/harness.ts";
import { acquireAll, tryAcquireAll } from "./acquire-all.ts";
import { Semaphore } from "./semaphore.ts";

await compare("acquire-all", 100_000, {
  async acquireAll(ops) {
    const [a, b] = [new Semaphore(1), new Semaphore(1)];
    for (let i = 0; i < ops; i += 1) (await acquireAll([a, b])).release();
  },
  tryAcquireAll(ops) {
    const [a, b] = [new Semaphore(1), new Semaphore(1)];
    for (let i = 0; i < ops; i += 1) tryAcquireAll([a, b])?.release();
  },
  async floor(ops) {
    const [a, b] = [new Semaphore(1), new Semaphore(1)];
    for (let i = 0; i < ops; i += 1) {
      const [first, second] = [await a.acquire(), await b.acquire()];
      second.release();
      first.release();
    }
  },
});
