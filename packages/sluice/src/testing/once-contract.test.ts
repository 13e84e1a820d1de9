import { expect, it } from "vitest";
import { Limiter } from "../flow/limiter.ts";
import { RateLimiter } from "../pace/rate-limiter.ts";
import type { Policy } from "../policy.ts";
import { CircuitBreaker } from "../resilience/circuit-breaker.ts";
import { failover } from "../resilience/failover.ts";
import { fallback } from "../resilience/fallback.ts";
import { hedge } from "../resilience/hedge.ts";
import { retry } from "../resilience/retry.ts";
import { timeout } from "../resilience/timeout.ts";
import { Semaphore } from "../sync/semaphore.ts";

const policies: readonly (Policy & { stats(): Readonly<Record<string, unknown>> })[] = [
  new Semaphore(1),
  new Limiter(1),
  new RateLimiter({ count: 1_000, perMs: 1, burst: 2 }),
  new CircuitBreaker({ failures: 1 }),
  retry(),
  timeout(1_000),
  timeout(1_000, { mode: "cooperative" }),
  hedge({ hedgeAfterMs: 1_000 }),
  failover(["only"]),
  fallback(undefined),
];
const cases = policies.flatMap((policy) =>
  [undefined, new AbortController().signal].map((signal) => {
    const title = `${policy.constructor.name}.run ${signal === undefined ? "without" : "with"} a signal`;
    return { title, policy, signal };
  }),
);

it.each(cases)(
  "$title ends a call once, whatever the then does that somebody put on its promise",
  async ({ policy, signal }) => {
    const idle = policy.stats();
    expect(await policy.run(insistent, { signal })).toBe(1);
    expect(await policy.run(() => 4, { signal })).toBe(4);
    for (const count of ["running", "available", "failures", "abandoned", "losers", "lateErrors"] as const)
      expect(policy.stats()[count]).toBe(idle[count]);
  },
);

/** A promise of 1 whose own `then` says more than that. */
function insistent(): Promise<number> {
  // oxlint-disable-next-line unicorn/no-thenable -- its oddness is what is tested
  return Object.defineProperty(Promise.resolve(1), "then", { value: insist });
}

function insist(resolve?: (value: number) => void, reject?: (reason: unknown) => void): void {
  resolve?.(2);
  reject?.(3);
}
