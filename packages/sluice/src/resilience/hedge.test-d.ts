import { expectTypeOf } from "vitest";
import type { Policy } from "../policy.ts";
import { type Failover, failover } from "./failover.ts";
import { firstChunk } from "./first-chunk.ts";
import { type Hedge, hedge } from "./hedge.ts";
import { LatencyPercentile } from "./latency-percentile.ts";

expectTypeOf<Hedge>().toExtend<Policy>();
expectTypeOf<Failover<number>>().toExtend<Policy>();
// Unlike other policies, they always have a signal to hand on.
expectTypeOf(hedge({ hedgeAfterMs: 50 }).run(({ signal }) => signal)).toEqualTypeOf<Promise<AbortSignal>>();
expectTypeOf(hedge({ hedgeAfterMs: new LatencyPercentile(95) }).run(({ attempt }) => attempt)).toEqualTypeOf<
  Promise<number>
>();
expectTypeOf(failover(["a", "b"]).run(({ target }) => target)).toEqualTypeOf<Promise<string>>();
expectTypeOf(failover([1, "b"] as const).run(({ target }) => target)).toEqualTypeOf<Promise<1 | "b">>();
expectTypeOf(firstChunk(new ReadableStream<Uint8Array>())).toEqualTypeOf<Promise<AsyncIterableIterator<Uint8Array>>>();
// @ts-expect-error a hedge needs a delay
hedge({});
