// Against the floor: one limiter after the other, without asking both before.
import { compare } from "../../../../bench/harness.ts";
import { KeyedRateLimiter } from "./keyed-rate-limiter.ts";
import { RateLimiter } from "./rate-limiter.ts";
import { tryTakeAll } from "./take-all.ts";

const users = new KeyedRateLimiter({ count: 1_000_000, perMs: 1_000, burst: 1_000_000 });
const all = new RateLimiter({ count: 1_000_000, perMs: 1, burst: 1_000_000 });

await compare("take-all", 500_000, {
  tryTakeAll(ops) {
    const charges = [{ limiter: users, key: "ann" }, { limiter: all }];
    for (let i = 0; i < ops; i += 1) tryTakeAll(charges);
  },
  floor(ops) {
    for (let i = 0; i < ops; i += 1) void (users.tryTake("ann") && all.tryTake());
  },
});
