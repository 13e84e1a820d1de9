import { expectTypeOf } from "vitest";
import type { Policy } from "../policy.ts";
import type { Mutex } from "./mutex.ts";
import type { Permit } from "./permit.ts";

declare const mutex: Mutex;

expectTypeOf(mutex).toExtend<Policy>();
expectTypeOf(mutex.run(() => 1)).toEqualTypeOf<Promise<number>>();
expectTypeOf(mutex.run(({ guard }) => guard)).toEqualTypeOf<Promise<Permit>>();
expectTypeOf(mutex.tryAcquire()).toEqualTypeOf<Permit | undefined>();
// @ts-expect-error there is only one to be had
void mutex.acquire({ weight: 2 });
