import { expectTypeOf } from "vitest";
import type { Policy } from "../policy.ts";
import type { RateLimiter } from "./rate-limiter.ts";

declare const limiter: RateLimiter;

expectTypeOf(limiter).toExtend<Policy>();
expectTypeOf(limiter.run(() => 1, { key: "user-1", cost: 2 })).toEqualTypeOf<Promise<number>>();
expectTypeOf(limiter.tryTake("user-1")).toEqualTypeOf<boolean>();
expectTypeOf(limiter.take()).toEqualTypeOf<Promise<void>>();
// @ts-expect-error a key is a string
limiter.tryTake(7);
