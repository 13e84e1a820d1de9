import { expectTypeOf } from "vitest";
import type { Policy } from "../policy.ts";
import { RetryBudget } from "./retry-budget.ts";
import { type Retry, retry } from "./retry.ts";

expectTypeOf<Retry>().toExtend<Policy>();
expectTypeOf(retry().run(({ attempt }) => attempt)).toEqualTypeOf<Promise<number>>();
expectTypeOf(retry().run(({ idempotencyKey }) => Promise.resolve(idempotencyKey))).toEqualTypeOf<Promise<string>>();
retry({ classify: (error) => (error instanceof TypeError ? "stop" : "retry") });
expectTypeOf(retry().run(({ signal }) => signal)).toEqualTypeOf<Promise<AbortSignal>>();
retry({ backoff: (attempt, { previousMs, random }) => attempt * previousMs * random() });
retry({ deadline: () => undefined });
retry({ budget: new RetryBudget() });
// @ts-expect-error a wait is a number of milliseconds
retry({ backoff: () => "1s" });
// @ts-expect-error a verdict is one of two words
retry({ classify: () => true });
// @ts-expect-error a deadline is a number of milliseconds or a Deadline
retry({ deadline: "10s" });
