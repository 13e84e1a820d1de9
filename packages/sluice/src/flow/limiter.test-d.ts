import { expectTypeOf } from "vitest";
import type { Policy } from "../policy.ts";
import { limiter } from "./limiter-function.ts";
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
