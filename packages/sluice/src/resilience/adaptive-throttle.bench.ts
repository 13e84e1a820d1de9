// What the throttle costs while the dependency takes all, against the bare call.
import { compare } from "../../../../bench/harness.ts";
import { AdaptiveThrottle } from "./adaptive-throttle.ts";

const task = (): Promise<number> => Promise.resolve(1);
const throttle = new AdaptiveThrottle();

await compare("adaptive-throttle", 50_000, {
  async AdaptiveThrottle(ops) {
    for (let i = 0; i < ops; i += 1) await throttle.run(task);
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) await task();
  },
});
