import { expectTypeOf } from "vitest";
import { batch, type Batcher } from "./batch.ts";
import { loadMany } from "./load-many.ts";

const lengths = batch((keys: readonly string[]) => keys.map((key) => (key === "" ? new Error("empty") : key.length)));

expectTypeOf(lengths).toEqualTypeOf<Batcher<string, number>>();
expectTypeOf(lengths.load("a")).toEqualTypeOf<Promise<number>>();
expectTypeOf(loadMany(lengths, ["a"])).toEqualTypeOf<Promise<PromiseSettledResult<number>[]>>();
// @ts-expect-error keys are strings
void lengths.load(1);
// @ts-expect-error a batch function answers with a list
batch((keys: readonly string[]) => keys.length);
