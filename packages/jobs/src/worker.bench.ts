// Against the floor: a loop that takes as many payloads from an array as may run, and awaits them together. It has no
// leases, no retries and no record of what became of a job, and it waits for the slowest of each round. Our part includes
// adding the jobs to the store.
import { compare } from "../../../bench/harness.ts";
import { MemoryStore } from "./memory/memory-store.ts";
import { Worker } from "./worker.ts";

const QUEUE = "bench";
const CONCURRENCY = 100;

const pause = Promise.resolve();

async function work(): Promise<void> {
  await pause;
}

await compare("worker-drain", 50_000, {
  async sluice(ops) {
    const store = new MemoryStore({ retention: { succeededMs: 0 } });
    for (let from = 0; from < ops; from += 1_000) {
      await store.add(Array.from({ length: Math.min(1_000, ops - from) }, (_, payload) => ({ queue: QUEUE, payload })));
    }
    const done = Promise.withResolvers<undefined>();
    let left = ops;
    const handler = (): Promise<void> => {
      left -= 1;
      if (left === 0) done.resolve(undefined);
      return work();
    };
    const worker = new Worker(store, QUEUE, handler, { concurrency: CONCURRENCY });
    worker.start();
    await done.promise;
    await worker.stop();
  },
  async floor(ops) {
    const payloads = Array.from({ length: ops }, (_, payload) => payload);
    while (payloads.length > 0) await Promise.all(payloads.splice(-CONCURRENCY).map(work));
  },
});
