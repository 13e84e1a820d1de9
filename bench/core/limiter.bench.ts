// Against the peers, and against the floor: so many worker loops, which know neither callers nor lines.
import pLimit from "p-limit";
import PQueue from "p-queue";
import { limiter, Limiter } from "sluice";
import { compare, type Work, weigh } from "../harness.ts";

const CONCURRENCY = 8;
const WAVE = 64;
const task = (): Promise<void> => Promise.resolve();
const never = (): Promise<void> => new Promise(() => {});
const { signal } = new AbortController();

const peers: Readonly<Record<string, Work>> = {
  "p-limit"(ops) {
    const limit = pLimit(CONCURRENCY);
    return Promise.all(Array.from({ length: ops }, () => limit(task)));
  },
  "p-queue"(ops) {
    const queue = new PQueue({ concurrency: CONCURRENCY });
    return Promise.all(Array.from({ length: ops }, () => queue.add(task)));
  },
  floor(ops) {
    let next = 0;
    const work = async (): Promise<void> => {
      while (next < ops) {
        next += 1;
        await task();
      }
    };
    return Promise.all(Array.from({ length: CONCURRENCY }, work));
  },
};

await compare("limiter", 100_000, {
  Limiter(ops) {
    const limit = new Limiter(CONCURRENCY);
    return Promise.all(Array.from({ length: ops }, () => limit.run(task)));
  },
  ...peers,
});

await compare("limiter", 100_000, {
  limiter(ops) {
    const limit = limiter(CONCURRENCY);
    return Promise.all(Array.from({ length: ops }, () => limit(task)));
  },
  ...peers,
});

await compare("limiter-signal", 100_000, {
  Limiter(ops) {
    const limit = new Limiter(CONCURRENCY);
    return Promise.all(Array.from({ length: ops }, () => limit.run(task, { signal })));
  },
  "p-limit": (ops) => peers["p-limit"]?.(ops), // which takes none
  "p-queue"(ops) {
    const queue = new PQueue({ concurrency: CONCURRENCY });
    return Promise.all(Array.from({ length: ops }, () => queue.add(task, { signal })));
  },
});

const [ours, theirs, queue] = [limiter(CONCURRENCY), pLimit(CONCURRENCY), new PQueue({ concurrency: CONCURRENCY })];

await compare("limiter-free-slot", 100_000, {
  async limiter(ops) {
    for (let i = 0; i < ops; i += 1) await ours(task);
  },
  async "p-limit"(ops) {
    for (let i = 0; i < ops; i += 1) await theirs(task);
  },
  async "p-queue"(ops) {
    for (let i = 0; i < ops; i += 1) await queue.add(task);
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) await task();
  },
});

await compare("limiter-waves", 100_000, {
  async limiter(ops) {
    for (let i = 0; i < ops; i += WAVE) await Promise.all(Array.from({ length: WAVE }, () => ours(task)));
  },
  async "p-limit"(ops) {
    for (let i = 0; i < ops; i += WAVE) await Promise.all(Array.from({ length: WAVE }, () => theirs(task)));
  },
  async "p-queue"(ops) {
    for (let i = 0; i < ops; i += WAVE) await Promise.all(Array.from({ length: WAVE }, () => queue.add(task)));
  },
});

const lines: Readonly<Record<string, Work>> = {
  "p-limit"(count) {
    const limit = pLimit(CONCURRENCY);
    for (let i = 0; i < count; i += 1) void limit(never);
    return limit;
  },
  "p-queue"(count) {
    const own = new PQueue({ concurrency: CONCURRENCY });
    for (let i = 0; i < count; i += 1) void own.add(never);
    return own;
  },
};

await weigh("limiter-memory", 100_000, {
  Limiter(count) {
    const own = new Limiter(CONCURRENCY);
    for (let i = 0; i < count; i += 1) void own.run(never);
    return own;
  },
  ...lines,
});

await weigh("limiter-memory", 100_000, {
  "with a signal"(count) {
    const own = new Limiter(CONCURRENCY);
    const options = { signal: new AbortController().signal };
    for (let i = 0; i < count; i += 1) void own.run(never, options);
    return [own, options];
  },
  ...lines,
});
