/**
 * Debounce: runs a function once its callers have paused. For what follows typing or resizing and needs only the last
 * state: a search as one types, a save. It gives no order to what the runs start: let `latest` abort the run before. It
 * is no guard against doing a thing twice: for that, use an idempotency key. One debounced function for all calls: one
 * made for each call delays it and drops nothing.
 */
import { checkMs } from "../internal/check.ts";
import { type Paced, paced, type PacedOptions } from "./paced.ts";

export interface DebounceOptions extends PacedOptions {
  /** Runs the first call of a burst at once. @default false */
  readonly leading?: boolean | undefined;
  /** A call waits no longer for a pause. At least `waitMs`. @default Infinity */
  readonly maxWaitMs?: number | undefined;
}

/**
 * `fn`, run `waitMs` (at least 0, and finite) after the last call of a burst, with the arguments and the `this` of that
 * call. With `leading`, the first call is run at once, and the last one too if it is another. What `fn` throws is thrown by
 * the call or the `flush` that ran it, and by the timer otherwise, where it is an uncaught exception. A call that `fn` makes
 * itself waits for its turn.
 */
export function debounce<This, Args extends unknown[], R>(
  fn: (this: This, ...args: Args) => R,
  waitMs: number,
  options: DebounceOptions = {},
): Paced<This, Args, R> {
  const { maxWaitMs = Infinity, leading = false } = options;
  checkMs("waitMs", waitMs, { min: 0 });
  checkMs("maxWaitMs", maxWaitMs, { min: waitMs, infinity: true });
  return paced(fn, waitMs, maxWaitMs, leading, options);
}
