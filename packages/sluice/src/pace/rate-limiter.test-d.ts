import { expectTypeOf } from "vitest";
import type { Policy } from "../policy.ts";
import type { RateLimiter } from "./rate-limiter.ts";

declare const limiter: RateLimiter;

expectTypeOf(limiter).toExtend<Policy>();
expectTypeOf(limiter.run(() => 1, { cost: 2 })).toEqualTypeOf<Promise<number>>();
expectTypeOf(limiter.tryTake(2)).toEqualTypeOf<boolean>();
expectTypeOf(limiter.take()).toEqualTypeOf<Promise<void>>();
// @ts-expect-error cost is a number of tokens, and whose they are is for a KeyedRateLimiter
limiter.tryTake("user-1");
