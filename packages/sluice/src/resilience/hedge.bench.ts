// The first attempt answers in time. Against the floor: a timer that would begin the second, set and cleared.
import { compare } from "../../../../bench/harness.ts";
import { hedge } from "./hedge.ts";
import { LatencyPercentile } from "./latency-percentile.ts";

const AFTER_MS = 1_000;
const call = (): Promise<number> => Promise.resolve(1);

await compare("hedge", 100_000, {
  async sluice(ops) {
    const policy = hedge({ hedgeAfterMs: AFTER_MS });
    for (let i = 0; i < ops; i += 1) await policy.run(call);
  },
  async floor(ops) {
    for (let i = 0; i < ops; i += 1) {
      const timer = setTimeout(() => {}, AFTER_MS);
      await call();
      clearTimeout(timer);
    }
  },
});

// Against the floor: the latest thousand, of which the percentile is found by sorting them now and then.
await compare("latency-percentile", 100_000, {
  sluice(ops) {
    const delay = new LatencyPercentile(95);
    let total = 0;
    for (let i = 0; i < ops; i += 1) {
      delay.record((i * 7919) % 1_000);
      total += delay.ms;
    }
    return total;
  },
  floor(ops) {
    const latest = new Float64Array(1_000);
    let total = 0;
    let percentile = 0;
    for (let i = 0; i < ops; i += 1) {
      latest[i % 1_000] = (i * 7919) % 1_000;
      if (i % 100 === 0) percentile = latest.toSorted()[950] ?? 0;
      total += percentile;
    }
    return total;
  },
});
