import { expectTypeOf } from "vitest";
import { RateLimiter } from "../pace/rate-limiter.ts";
import type { Policy } from "../policy.ts";
import { limiter } from "./limiter-function.ts";
import type { StartRate } from "./limiter/options.ts";
import type { Limiter } from "./limiter.ts";

declare const limit: Limiter;

expectTypeOf(limit).toExtend<Policy>();
expectTypeOf(limit.run(() => 1)).toEqualTypeOf<Promise<number>>();
expectTypeOf(limit.run(({ signal }) => Promise.resolve(signal))).toEqualTypeOf<Promise<AbortSignal | undefined>>();
expectTypeOf(limit.drain()).toEqualTypeOf<Promise<void>>();
expectTypeOf(limiter(2)(async () => "text", { timeoutMs: 5 })).toEqualTypeOf<Promise<string>>();
expectTypeOf(limiter(2).limiter).toEqualTypeOf<Limiter>();
// @ts-expect-error a limit is an option
limiter(2, 5);
expectTypeOf(
  limiter(2).map(new Set([1]), (item, { index, signal }) => `${item} ${index} ${signal.aborted}`),
).toEqualTypeOf<Promise<string[]>>();
expectTypeOf(limit.setPriority("id", 1)).toEqualTypeOf<number>();
expectTypeOf(new RateLimiter({ count: 1, perMs: 1 })).toExtend<StartRate>();
// @ts-expect-error a word of the five
limiter(1, { whenFull: "drop" });
