import { expectTypeOf } from "vitest";
import { Limiter } from "../flow/limiter.ts";
import type { Policy } from "../policy.ts";
import { Mutex } from "../sync/mutex.ts";
import { CircuitBreaker } from "./circuit-breaker.ts";
import { compose } from "./compose.ts";
import { retry } from "./retry.ts";
import { timeout } from "./timeout.ts";

const policy = compose(timeout(1_000), retry(), new CircuitBreaker(), new Limiter(4));

expectTypeOf(policy).toExtend<Policy>();
expectTypeOf(policy.run(() => 1)).toEqualTypeOf<Promise<number>>();
void policy.run((context) => {
  expectTypeOf(context.attempt).toEqualTypeOf<number>();
  expectTypeOf(context.idempotencyKey).toEqualTypeOf<string>();
  expectTypeOf(context.signal).toEqualTypeOf<AbortSignal>();
});
void policy.run(() => 1, { idempotencyKey: "order 7", priority: 2, timeoutMs: 10 });
// @ts-expect-error no layer takes it
void policy.run(() => 1, { urgency: 2 });

const plain = compose(new Limiter(4));
void plain.run(({ signal }) => expectTypeOf(signal).toEqualTypeOf<AbortSignal | undefined>());
// @ts-expect-error nothing in here counts attempts
void plain.run(({ attempt }) => attempt);

const nested = compose(policy, new Mutex());
void nested.run((context) => {
  expectTypeOf(context.attempt).toEqualTypeOf<number>();
  context.guard.release();
});
// @ts-expect-error at least one
void compose();
