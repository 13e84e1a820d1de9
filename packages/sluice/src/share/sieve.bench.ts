// How many of the reads of each seeded trace are found in a cache of a tenth of the keys, and what it takes to choose.
import { compare } from "../../../../bench/harness.ts";
import { policies, READS, ROOM, traces } from "./eviction.stage.ts";

for (const [name, draw] of Object.entries(traces)) {
  const trace = draw();
  const rates = Object.entries(policies).map(([policy, run]) => `${policy} ${run(trace, ROOM).toFixed(4)}`);
  console.error(`hit rate, ${name}: ${rates.join("  ")}`);
}

const trace = traces.zipf();
await compare("sieve", READS, {
  Sieve: () => policies.sluice(trace, ROOM),
  floor: () => policies.lru(trace, ROOM),
});
