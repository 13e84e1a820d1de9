import { expectTypeOf } from "vitest";
import { forEachLimit } from "./for-each-limit.ts";
import { mapLimitSettled } from "./map-limit-settled.ts";
import { mapLimit } from "./map-limit.ts";
import { mapStream } from "./map-stream.ts";

declare const names: readonly string[];
declare const stream: ReadableStream<number> & AsyncIterable<number>;

expectTypeOf(mapLimit(names, 2, async (name) => name.length)).toEqualTypeOf<Promise<number[]>>();
expectTypeOf(mapLimit(names, 2, (name, { index }) => [name, index] as const)).toEqualTypeOf<
  Promise<(readonly [string, number])[]>
>();
expectTypeOf(mapLimit(stream, 2, (item) => item)).toEqualTypeOf<Promise<number[]>>();
expectTypeOf(mapLimitSettled(new Set(names), 2, async () => true)).toEqualTypeOf<
  Promise<PromiseSettledResult<boolean>[]>
>();
expectTypeOf(forEachLimit(names, 2, () => {})).toEqualTypeOf<Promise<void>>();
for await (const length of mapStream(names, 2, async (name) => name.length)) {
  expectTypeOf(length).toEqualTypeOf<number>();
}
void mapLimit(names, 2, (_, { signal, index }) => {
  expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
  expectTypeOf(index).toEqualTypeOf<number>();
});
// @ts-expect-error there is no map without a limit
void mapLimit(names, (name: string) => name);
