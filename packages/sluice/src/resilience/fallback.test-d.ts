import { expectTypeOf } from "vitest";
import type { Policy } from "../policy.ts";
import { type Fallback, fallback } from "./fallback.ts";

expectTypeOf<Fallback<string>>().toExtend<Policy>();
// The result is either the function's or the fallback's.
expectTypeOf(fallback("none").run(() => 5)).toEqualTypeOf<Promise<number | string>>();
expectTypeOf(fallback(async () => null).run(() => Promise.resolve(5))).toEqualTypeOf<Promise<number | null>>();
expectTypeOf(fallback((error) => String(error))).toEqualTypeOf<Fallback<string>>();
