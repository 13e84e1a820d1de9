/**
 * Debounce for who needs the result: each call gets a promise, that of the run which takes it along. For what needs no
 * result, `debounce` is smaller.
 */
import { debounce, type DebounceOptions } from "./debounce.ts";
import { type PacedAsync, pacedAsync, type PacedAsyncOptions } from "./paced-async.ts";

export type DebounceAsyncOptions = DebounceOptions & PacedAsyncOptions;

/**
 * `fn`, run when `debounce` would run it. A call resolves, or rejects, as the run does that was made with its arguments or
 * with those of a later call. Two runs may overlap, and end in any order: `latest` has the older one aborted.
 */
export function debounceAsync<This, Args extends unknown[], R>(
  fn: (this: This, ...args: Args) => R | PromiseLike<R>,
  waitMs: number,
  options: DebounceAsyncOptions = {},
): PacedAsync<This, Args, R> {
  return pacedAsync(fn, (run) => debounce(run, waitMs, { ...options, signal: undefined }), options);
}
