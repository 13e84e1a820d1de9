import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { checkFunction, checkFunctions, checkInteger, checkMs } from "../internal/check.ts";
import type { NameOptions } from "../internal/names.ts";
import { tell } from "../internal/tell.ts";

export interface PoolOptions<R> extends NameOptions {
  /**
   * Makes one. `signal` aborts when the pool closes. It isn't called again for a caller whose resource failed: that
   * caller is told, and may try again. It must end by itself, since it has a place of the pool until it has.
   */
  readonly create: (context: { readonly signal: AbortSignal }) => R | PromiseLike<R>;
  /** Takes one down. Its place is free once this has settled, so it must end. @default drops it */
  readonly destroy?: ((resource: R) => unknown) | undefined;
  /** Whether one may be lent once more; if not, or if this throws, it is destroyed and another takes its place. */
  readonly validate?: ((resource: R) => boolean | PromiseLike<boolean>) | undefined;
  /** One that came back less than this long ago is lent without `validate`. At least 0. @default 0 */
  readonly validateAfterMs?: number | undefined;
  /** As many are kept, though nobody needs them. An integer from 0 to `max`. @default 0 */
  readonly min?: number | undefined;
  /** How long those above `min` are kept while nobody needs them. At least 0. @default Infinity */
  readonly idleMs?: number | undefined;
  /** After this long one is lent no more, and destroyed as soon as it is back. At least 1. @default Infinity */
  readonly lifetimeMs?: number | undefined;
  /**
   * Callers allowed to wait while all `max` are out or under way; the next one gets `QueueFullError`. An integer >= 0.
   * @default Infinity
   */
  readonly maxWaiting?: number | undefined;
  /**
   * Told of what no caller hears of: a failing `destroy` or `validate`, and a failing `create` for `min` or for who
   * waits no more. @default a failing `destroy` surfaces as an unhandled rejection, the others are only counted;
   * what this throws is one, too
   */
  readonly onError?: ((error: unknown) => void) | undefined;
  /** Runs `timeoutMs`, `idleMs` and `lifetimeMs`, and tells ages. @default systemClock */
  readonly clock?: Clock | undefined;
}

export type PoolStats = Readonly<{
  max: number;
  /** All that have a place: the sum of the five below. */
  size: number;
  idle: number;
  borrowed: number;
  /** Being validated. */
  checking: number;
  creating: number;
  destroying: number;
  waiting: number;
  /** Age of the longest wait that goes on; 0 if nobody waits. */
  oldestWaitMs: number;
  /** Leases given out so far. */
  granted: number;
  created: number;
  destroyed: number;
  /** Calls of `create`, `validate` and `destroy` that failed. */
  failed: number;
  /** Callers turned away because too many waited or it was closed, those that waited when it closed included. */
  rejected: number;
  /** Callers that got nothing, because of their `timeoutMs` or because their signal aborted while they waited. */
  timedOut: number;
  aborted: number;
  closed: boolean;
}>;

type Resolved = "min" | "validateAfterMs" | "idleMs" | "lifetimeMs" | "maxWaiting" | "clock";

export type PoolSettings<R> = Omit<PoolOptions<R>, Resolved> & {
  readonly [K in Resolved]: NonNullable<PoolOptions<R>[K]>;
};

/** With defaults. Throws for what is no such thing. */
export function checkPoolOptions<R>(max: number, options: PoolOptions<R>): PoolSettings<R> {
  checkInteger("max", max, { min: 1, infinity: true });
  const min = checkInteger("min", options.min ?? 0, { min: 0 });
  if (min > max) throw new RangeError(`min must be an integer <= ${max}, got ${min}`);
  checkFunction("create", options.create);
  const { onError } = options;
  checkFunctions(options, ["destroy", "validate", "onError"]);
  return {
    ...options,
    onError: onError === undefined ? undefined : (error) => tell(onError, error),
    min,
    validateAfterMs: checkMs("validateAfterMs", options.validateAfterMs ?? 0),
    idleMs: checkMs("idleMs", options.idleMs ?? Infinity),
    lifetimeMs: checkMs("lifetimeMs", options.lifetimeMs ?? Infinity, { min: 1, infinity: true }),
    maxWaiting: checkInteger("maxWaiting", options.maxWaiting ?? Infinity, { min: 0, infinity: true }),
    clock: options.clock ?? systemClock,
  };
}
