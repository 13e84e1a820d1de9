// What a fault that is built in but not enabled costs a call that has nothing else around it.
import { compare } from "../../../../bench/harness.ts";
import { chaosFault } from "./chaos.ts";

const task = (): Promise<number> => Promise.resolve(1);
const fault = chaosFault(() => new Error("down"), { rate: 0.5 });

await compare("chaos", 100_000, {
  async Chaos(ops) {
    for (let i = 0; i < ops; i += 1) await fault.run(task);
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) await task();
  },
});
