// What finding the limit adds to a count of what runs, which is the floor here.
import { compare } from "../../../../bench/harness.ts";
import { aimd } from "./adaptive-limiter-aimd.ts";
import { gradient } from "./adaptive-limiter-gradient.ts";
import type { LimitStrategy } from "./adaptive-limiter-options.ts";
import { AdaptiveLimiter } from "./adaptive-limiter.ts";

const task = (): Promise<number> => Promise.resolve(1);

let running = 0;
function counted(): Promise<number> {
  if (running >= 20) throw new Error("full");
  running += 1;
  return task().finally(() => (running -= 1));
}

for (const [name, strategy] of Object.entries<LimitStrategy>({ aimd: aimd(), gradient: gradient() })) {
  const limiter = new AdaptiveLimiter(strategy);
  await compare(`adaptive-limiter-${name}`, 50_000, {
    async AdaptiveLimiter(ops) {
      for (let i = 0; i < ops; i += 1) await limiter.run(task);
    },
    async floor(ops) {
      for (let i = 0; i < ops; i += 1) await counted();
    },
  });
}
