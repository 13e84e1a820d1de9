import pLimit from "p-limit";
import PQueue from "p-queue";
import { limiter, Limiter } from "sluice";
import { compare, weigh } from "../harness.ts";

const CONCURRENCY = 8;
const task = (): Promise<void> => Promise.resolve();
const never = (): Promise<void> => new Promise(() => {});

await compare("limiter", 100_000, {
  async sluice(ops) {
    const limit = limiter(CONCURRENCY);
    await Promise.all(Array.from({ length: ops }, () => limit(task)));
  },
  async "p-limit"(ops) {
    const limit = pLimit(CONCURRENCY);
    await Promise.all(Array.from({ length: ops }, () => limit(task)));
  },
  async "p-queue"(ops) {
    const queue = new PQueue({ concurrency: CONCURRENCY });
    await Promise.all(Array.from({ length: ops }, () => queue.add(task)));
  },
});

const [ours, theirs] = [limiter(CONCURRENCY), pLimit(CONCURRENCY)];

await compare("limiter-free-slot", 100_000, {
  async sluice(ops) {
    for (let i = 0; i < ops; i += 1) await ours(task);
  },
  async "p-limit"(ops) {
    for (let i = 0; i < ops; i += 1) await theirs(task);
  },
});

await weigh("limiter-waiter", 100_000, {
  sluice(count) {
    const own = new Limiter(CONCURRENCY);
    for (let i = 0; i < count; i += 1) void own.run(never);
    return own;
  },
  "p-limit"(count) {
    const limit = pLimit(CONCURRENCY);
    for (let i = 0; i < count; i += 1) void limit(never);
    return limit;
  },
  "p-queue"(count) {
    const queue = new PQueue({ concurrency: CONCURRENCY });
    for (let i = 0; i < count; i += 1) void queue.add(never);
    return queue;
  },
});
