import { expectTypeOf } from "vitest";
import { type Acquirable, acquireAll, tryAcquireAll } from "./acquire-all.ts";
import type { Mutex } from "./mutex.ts";
import type { Permit } from "./permit.ts";
import type { Semaphore } from "./semaphore.ts";
import type { SignalSemaphore } from "./signal-semaphore.ts";

declare const sem: Semaphore;
declare const mutex: Mutex;
declare const signal: SignalSemaphore;

expectTypeOf(sem).toExtend<Acquirable>();
expectTypeOf(mutex).toExtend<Acquirable>();
expectTypeOf(acquireAll([sem, mutex, { from: sem, weight: 2 }])).toEqualTypeOf<Promise<Permit>>();
expectTypeOf(tryAcquireAll([mutex])).toEqualTypeOf<Permit | undefined>();
// @ts-expect-error what nobody owns, nobody gives back
void acquireAll([signal]);
