/**
 * Throttle for who needs the result: each call gets a promise, that of the run which takes it along. For what needs no
 * result, `throttle` is smaller.
 */
import { type PacedAsync, pacedAsync, type PacedAsyncOptions } from "./paced-async.ts";
import { throttle, type ThrottleOptions } from "./throttle.ts";

export type ThrottleAsyncOptions = ThrottleOptions & PacedAsyncOptions;

/**
 * `fn`, run when `throttle` would run it. A call resolves, or rejects, as the run does that was made with its arguments or
 * with those of a later call. Two runs may overlap, and end in any order: `latest` has the older one aborted.
 */
export function throttleAsync<This, Args extends unknown[], R>(
  fn: (this: This, ...args: Args) => R | PromiseLike<R>,
  waitMs: number,
  options: ThrottleAsyncOptions = {},
): PacedAsync<This, Args, R> {
  return pacedAsync(fn, (run) => throttle(run, waitMs, { ...options, signal: undefined }), options);
}
