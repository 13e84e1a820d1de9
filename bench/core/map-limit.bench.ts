// The floor: workers that take the next index until none is left, which know neither errors nor signals nor any source
// but a list.
import pLimit from "p-limit";
import pMap, { pMapIterable } from "p-map";
import { mapLimit, mapStream } from "sluice";
import { compare } from "../harness.ts";

const CONCURRENCY = 16;
const increment = async (item: number): Promise<number> => item + 1;
const list = (length: number): number[] => Array.from({ length }, (_, item) => item);

async function floor(items: readonly number[], fn: (item: number) => Promise<number>): Promise<number[]> {
  const results = Array.from<number>({ length: items.length });
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < items.length) {
      const index = next;
      next += 1;
      results[index] = await fn(items[index] as number);
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  return results;
}

await compare("map-limit", 100_000, {
  mapLimit: (ops) => mapLimit(list(ops), CONCURRENCY, increment),
  "p-map": (ops) => pMap(list(ops), increment, { concurrency: CONCURRENCY }),
  "p-limit": (ops) => {
    const limit = pLimit(CONCURRENCY);
    return Promise.all(list(ops).map((item) => limit(increment, item)));
  },
  floor: (ops) => floor(list(ops), increment),
});

async function sum(results: AsyncIterable<number>): Promise<number> {
  let total = 0;
  for await (const result of results) total += result;
  return total;
}

await compare("map-stream", 100_000, {
  mapStream: (ops) => sum(mapStream(list(ops), CONCURRENCY, increment)),
  "p-map": (ops) => sum(pMapIterable(list(ops), increment, { concurrency: CONCURRENCY })),
});
