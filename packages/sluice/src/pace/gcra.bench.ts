// Against the floor: the two additions and the comparison alone, on numbers that nobody checked.
import { compare } from "../../../../bench/harness.ts";
import { gcra } from "./gcra.ts";

const limit = { intervalMs: 10, burst: 5 };

await compare("gcra", 5_000_000, {
  sluice(ops) {
    let [tat, allowed] = [0, 0];
    for (let now = 0; now < ops; now += 1) {
      const decision = gcra(tat, now, limit);
      tat = decision.tat;
      if (decision.allowed) allowed += 1;
    }
    return allowed;
  },
  floor(ops) {
    const { intervalMs, burst } = limit;
    let [tat, allowed] = [0, 0];
    for (let now = 0; now < ops; now += 1) {
      if (tat - (burst - 1) * intervalMs > now) continue;
      tat = Math.max(tat, now) + intervalMs;
      allowed += 1;
    }
    return allowed;
  },
});
