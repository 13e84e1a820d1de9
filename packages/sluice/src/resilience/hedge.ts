/**
 * Makes the same call again when the first takes longer than usual, and takes whichever answers first: for reads whose
 * slow tail comes of bad luck, not of load. It is a second call for each that is slow, about 5 % more at the 95th
 * percentile (Dean and Barroso, "The Tail at Scale", CACM 56(2), 2013), so what it calls has to be cheap and safe to
 * repeat; a `budget` keeps it from adding to an overload. Over several targets, `failover`.
 *
 * A call that fails lets the next begin at once. The winner's signal never aborts, so that an answer can still be read
 * from; for one that streams, `firstChunk` decides by the first chunk.
 */
import { register } from "../internal/names.ts";
import type { Policy, WaitOptions } from "../policy.ts";
import type { HedgeContext, HedgeOptions, HedgeStats } from "./hedge-options.ts";
import { type AttemptRules, attemptRules, runAttempts } from "./hedge-run.ts";

/** A policy that makes up to `maxAttempts` calls, and answers with the first to succeed. */
export function hedge(options: HedgeOptions): Hedge {
  return new Hedge(options);
}

export class Hedge implements Policy {
  readonly name: string | undefined;
  readonly #rules: AttemptRules<undefined>;

  constructor(options: HedgeOptions) {
    this.#rules = attemptRules(options, options.maxAttempts ?? 2);
    this.name = options.name;
    register("hedge", options, this);
  }

  stats(): HedgeStats {
    return { ...this.#rules.counts };
  }

  /**
   * Calls `fn` at once. If all calls fail, rejects with an `AggregateError` of what each failed with, in the order of
   * their beginning, whose `cause` is the last; or with the error that let no other call begin. The caller's abort ends
   * all of them, with its reason, at once.
   */
  run<T>(fn: (context: HedgeContext) => T | PromiseLike<T>, options: WaitOptions = {}): Promise<T> {
    return runAttempts(this.#rules, fn, options);
  }
}
