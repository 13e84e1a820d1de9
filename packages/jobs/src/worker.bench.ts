// Against the floor: a loop that takes as many payloads from an array as may run, awaits them together, and keeps
// nothing. It has no leases, no retries, no record of what became of a job, and waits for the slowest of each round.
import { compare } from "../../../bench/harness.ts";
import { MemoryStore } from "./memory/memory-store.ts";
import { Worker } from "./worker.ts";

const QUEUE = "bench";
const CONCURRENCY = 100;

function nothing(): undefined {
  return undefined;
}

async function soon(): Promise<void> {
  await null;
}

/** Adds the jobs, and resolves when the last has been handled. */
async function drain(count: number, work: () => Promise<void> | undefined): Promise<void> {
  const store = new MemoryStore({ retention: { succeededMs: 0 } });
  const payloads = Array.from({ length: count }, (_, payload) => ({ queue: QUEUE, payload }));
  for (let from = 0; from < count; from += 1_000) await store.add(payloads.slice(from, from + 1_000));
  const done = Promise.withResolvers<undefined>();
  let left = count;
  const handler = (): Promise<void> | undefined => {
    left -= 1;
    if (left === 0) done.resolve(undefined);
    return work();
  };
  const worker = new Worker(store, QUEUE, handler, { concurrency: CONCURRENCY });
  worker.start();
  await done.promise;
  await worker.stop();
}

async function floor(count: number, work: () => Promise<void> | undefined): Promise<void> {
  const payloads = Array.from({ length: count }, (_, payload) => payload);
  while (payloads.length > 0) await Promise.all(payloads.splice(-CONCURRENCY).map(work));
}

await compare("worker-drain", 50_000, {
  sluice: (ops) => drain(ops, soon),
  floor: (ops) => floor(ops, soon),
});

await compare("worker-drain-sync", 50_000, {
  sluice: (ops) => drain(ops, nothing),
  floor: (ops) => floor(ops, nothing),
});
