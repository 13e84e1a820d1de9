/**
 * Asks one target after the other until one answers: the next at once when one fails, and, with `hedgeAfterMs`, also
 * when none has answered for so long. Put each target's breaker inside, so that a dead one is passed over at no cost.
 */
import { register } from "../internal/names.ts";
import type { Policy, WaitOptions } from "../policy.ts";
import type { FailoverContext, FailoverOptions, HedgeStats } from "./hedge-options.ts";
import { type AttemptRules, attemptRules, runAttempts } from "./hedge-run.ts";

/** A policy that asks each of `targets` once at most, in this order. They can be anything, one at least. */
export function failover<Target>(targets: readonly Target[], options: FailoverOptions = {}): Failover<Target> {
  return new Failover(targets, options);
}

export class Failover<Target> implements Policy {
  readonly name: string | undefined;
  readonly #rules: AttemptRules<Target>;

  constructor(targets: readonly Target[], options: FailoverOptions = {}) {
    if (!Array.isArray(targets)) throw new TypeError(`targets must be an array, got ${typeof targets}`);
    if (targets.length === 0) throw new RangeError("targets must have one item at least, got none");
    const hedgeAfterMs = options.hedgeAfterMs ?? Infinity;
    this.#rules = attemptRules({ ...options, hedgeAfterMs }, targets.length, [...targets]);
    this.name = options.name;
    register("failover", options, this);
  }

  stats(): HedgeStats {
    return { ...this.#rules.counts };
  }

  /**
   * Calls `fn` at once, with the first target, and answers with the first call to succeed. If all fail, rejects with an
   * `AggregateError` of what each failed with, in the order of the targets, whose `cause` is the last to fail; or with
   * the error that no other target was asked after. The caller's abort ends all calls, with its reason, at once.
   */
  run<T>(fn: (context: FailoverContext<Target>) => T | PromiseLike<T>, options: WaitOptions = {}): Promise<T> {
    return runAttempts(this.#rules, fn, options);
  }
}
