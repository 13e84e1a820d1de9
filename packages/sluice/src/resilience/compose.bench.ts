// What `compose` adds to policies that are run within each other by hand. Against the peers, see `bench/failing`.
import { compare } from "../../../../bench/harness.ts";
import { aimd } from "./adaptive-limiter-aimd.ts";
import { AdaptiveLimiter } from "./adaptive-limiter.ts";
import { CircuitBreaker } from "./circuit-breaker.ts";
import { compose } from "./compose.ts";
import { retry } from "./retry.ts";

const task = (): Promise<number> => Promise.resolve(1);
const [again, breaker, slots] = [retry(), new CircuitBreaker(), new AdaptiveLimiter(aimd())];
const composed = compose(again, breaker, slots);

await compare("compose-by-hand", 50_000, {
  async compose(ops) {
    for (let i = 0; i < ops; i += 1) await composed.run(task);
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) await again.run(() => breaker.run(() => slots.run(task)));
  },
});
