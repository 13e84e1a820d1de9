import { expectTypeOf } from "vitest";
import type { Policy } from "../policy.ts";
import { CircuitBreaker, type CircuitState } from "./circuit-breaker.ts";

declare const breaker: CircuitBreaker;

expectTypeOf(breaker).toExtend<Policy>();
expectTypeOf(breaker.run(() => Promise.resolve(1))).toEqualTypeOf<Promise<number>>();
expectTypeOf(breaker.state).toEqualTypeOf<CircuitState>();
void new CircuitBreaker({ classify: (outcome) => (outcome.status === "fulfilled" ? "success" : "ignore") });
// @ts-expect-error a verdict is one of three words
void new CircuitBreaker({ classify: () => false });
