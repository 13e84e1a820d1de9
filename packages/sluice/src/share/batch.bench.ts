// What signals and weights add to a batch without them, which is the floor here. Against the peers, and against a floor
// that is written by hand, see `bench/failing`.
import { compare } from "../../../../bench/harness.ts";
import type { BatcherOptions, LoadOptions } from "./batch-options.ts";
import { batch } from "./batch.ts";

const SIZE = 1_000;

async function rounds(ops: number, options?: BatcherOptions<number, number>, load?: LoadOptions): Promise<void> {
  const batcher = batch((keys: readonly number[]) => keys, options);
  for (let from = 0; from < ops; from += SIZE)
    await Promise.all(Array.from({ length: SIZE }, (_, key) => batcher.load(from + key, load)));
}

await compare("batch-signal", 50_000, {
  batch: (ops) => rounds(ops, undefined, new AbortController()),
  floor: (ops) => rounds(ops),
});

await compare("batch-weights", 50_000, {
  batch: (ops) => rounds(ops, { weight: (key) => key % 7, maxWeight: 3_000 }),
  floor: (ops) => rounds(ops),
});
