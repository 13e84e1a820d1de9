import { expectTypeOf } from "vitest";
import type { Policy } from "../policy.ts";
import { type Timeout, timeout } from "./timeout.ts";

expectTypeOf<Timeout>().toExtend<Policy>();
// Unlike other policies, it always has a signal to hand on.
expectTypeOf(timeout(50).run(({ signal }) => signal)).toEqualTypeOf<Promise<AbortSignal>>();
expectTypeOf(timeout(50).run(() => Promise.resolve("a"))).toEqualTypeOf<Promise<string>>();
// @ts-expect-error a duration is a number of milliseconds
timeout("5s");
// @ts-expect-error there are two modes
timeout(50, { mode: "aggressive" });
