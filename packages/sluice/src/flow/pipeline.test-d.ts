import { expectTypeOf } from "vitest";
import { type Pipeline, pipeline } from "./pipeline.ts";

const parsed = pipeline(["1", "2"]).stage("parse", async (text) => Number(text), { buffer: 4 });
expectTypeOf(parsed).toEqualTypeOf<Pipeline<number>>();

const sorted = parsed
  .whole("sort", async (items) => (await Array.fromAsync(items)).toSorted((a, b) => a - b), { buffer: 1 })
  .stage("print", (item, { index }) => `${index}: ${item}`, { buffer: 4, workers: 4, ordered: true });
expectTypeOf(sorted).toEqualTypeOf<Pipeline<string>>();

for await (const line of sorted) expectTypeOf(line).toEqualTypeOf<string>();
expectTypeOf(sorted.forEach((line) => line.length)).toEqualTypeOf<Promise<void>>();
expectTypeOf(sorted.stats().bottleneck).toEqualTypeOf<string>();
// @ts-expect-error a stage takes what the one before it gives
parsed.stage("wrong", (text: string) => text, { buffer: 1 });
// @ts-expect-error there is no stage without a bound
parsed.stage("unbounded", (item) => item, {});
// @ts-expect-error several workers need a choice of order
parsed.stage("wide", (item) => item, { buffer: 1, workers: 4 });
// @ts-expect-error no such path
parsed.stage("path", (item) => item, { buffer: 1, onError: "ignore" });
