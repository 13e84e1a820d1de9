// What the forms of a map cost beside the least that could do the job. Against peers: bench/core/map-limit.bench.ts.
import { compare } from "../../../../bench/harness.ts";
import { forEachLimit } from "./for-each-limit.ts";
import { mapLimitSettled } from "./map-limit-settled.ts";
import { mapLimit } from "./map-limit.ts";

const CONCURRENCY = 16;
const increment = async (item: number): Promise<number> => item + 1;
const list = (length: number): number[] => Array.from({ length }, (_, item) => item);

await compare("map-limit-sync", 1_000_000, {
  mapLimit: (ops) => mapLimit(list(ops), CONCURRENCY, (item) => item + 1),
  floor: (ops) => list(ops).map((item) => item + 1),
});

await compare("map-limit-short", 20_000, {
  async mapLimit(ops) {
    for (let times = 0; times < ops; times += 1) await mapLimit([1, 2, 3], 2, increment);
  },
  async floor(ops) {
    for (let times = 0; times < ops; times += 1) await Promise.all([1, 2, 3].map(increment));
  },
});

await compare("map-limit-settled", 100_000, {
  mapLimitSettled: (ops) => mapLimitSettled(list(ops), CONCURRENCY, increment),
  floor: (ops) => Promise.allSettled(list(ops).map(increment)),
});

async function* source(length: number): AsyncGenerator<number> {
  for (let item = 0; item < length; item += 1) yield item;
}

await compare("for-each-limit", 100_000, {
  forEachLimit: (ops) => forEachLimit(source(ops), CONCURRENCY, increment),
  async floor(ops) {
    for await (const item of source(ops)) await increment(item);
  },
});
