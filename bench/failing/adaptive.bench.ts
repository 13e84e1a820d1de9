// A limit that is found against one that is set: an adaptive limiter where the peers have a fixed bulkhead.
import { bulkhead } from "cockatiel";
import pLimit from "p-limit";
import { AdaptiveLimiter, gradient } from "sluice";
import { compare } from "../harness.ts";

const task = (): Promise<number> => Promise.resolve(1);

const limiter = new AdaptiveLimiter(gradient(), { initialConcurrency: 64 });
const theirs = bulkhead(64, 1e6);
const slots = pLimit(64);

await compare("adaptive", 50_000, {
  async sluice(ops) {
    for (let i = 0; i < ops; i += 1) await limiter.run(task);
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) await task();
  },
  async cockatiel(ops) {
    for (let i = 0; i < ops; i += 1) await theirs.execute(task);
  },
  async "p-limit"(ops) {
    for (let i = 0; i < ops; i += 1) await slots(task);
  },
});
