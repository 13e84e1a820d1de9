// Prices are read by every request and are slow to get. Ten requests for one price make one query.
import { Cache, freshness } from "sluice";

let queries = 0;
const prices = new Cache(
  async (item: string) => {
    queries += 1;
    await Promise.resolve(); // the database
    return item === "gone" ? undefined : item.length * 100;
  },
  {
    maxEntries: 10_000,
    ttlMs: 60_000,
    // Popular prices are renewed before their end; if the database is down, the old ones do for ten minutes.
    freshness: freshness({ refreshAhead: 0.1, staleOnErrorMs: 600_000, absentTtlMs: 1_000, jitter: 0.1 }),
  },
);

const found = await Promise.all(Array.from({ length: 10 }, () => prices.load("chair")));
console.log(`${found[0]} for each of ${found.length}, ${queries} query`);
await prices.load("chair", { timeoutMs: 500 });
console.log(`again: ${queries} query`);

prices.delete("chair"); // its price was changed
await prices.load("chair");
console.log(`changed: ${queries} queries`);
const { hits, misses, entries } = prices.stats();
console.log(`${hits} hit, ${misses} misses, ${entries} kept`);

// Prints:
// 500 for each of 10, 1 query
// again: 1 query
// changed: 2 queries
// 1 hit, 11 misses, 1 kept
