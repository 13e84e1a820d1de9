/**
 * Throttle: runs a function at a steady rhythm while it is called. For what must follow closely, but not that often:
 * scrolling, progress, metrics. For a pause in the calls, use `debounce`; to let every call happen in time, `RateLimiter`.
 */
import { checkMs } from "../internal/check.ts";
import { type Paced, paced, type PacedOptions } from "./paced.ts";

export interface ThrottleOptions extends PacedOptions {
  /** Runs a call at once if none was run within the last `waitMs`. @default true */
  readonly leading?: boolean | undefined;
}

/**
 * `fn`, run at most once in `waitMs` (at least 0, and finite): a call at once if it can, and else the last of those made
 * meanwhile as soon as it may, which begins the next `waitMs`. What `fn` throws is thrown by the call or the `flush` that
 * ran it, and by the timer otherwise, where it is an uncaught exception. A call that `fn` makes itself waits for its turn.
 */
export function throttle<This, Args extends unknown[], R>(
  fn: (this: This, ...args: Args) => R,
  waitMs: number,
  options: ThrottleOptions = {},
): Paced<This, Args, R> {
  checkMs("waitMs", waitMs, { min: 0 });
  return paced(fn, Infinity, waitMs, options.leading ?? true, options);
}
