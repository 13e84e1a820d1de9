/**
 * Calls a function for each item, at most `concurrency` calls at a time, and has their results in the order of the
 * items. For results as they come, use `mapStream`; for a limit that several callers share, `Limiter`.
 */
import { type Harvest, Lanes, type MapFunction, type MapOptions } from "./lanes.ts";

/**
 * The results of `fn(item, { signal, index })`, by index. `items` is a list, an iterable or an async iterable, which is
 * read no further than calls can start; `concurrency` an integer >= 1. Calls start at once, in the async context of
 * the caller, in the order of the items.
 *
 * The first error rejects the result at once and as it is, be it a call's, thrown or rejected, the source's, or the
 * reason of `signal`: then no further call starts, the signal of those that run aborts with the same reason, and the
 * source is closed. For a deadline, give a signal that has one.
 */
export function mapLimit<T, R>(
  items: Iterable<T> | AsyncIterable<T>,
  concurrency: number,
  fn: MapFunction<T, R>,
  options: MapOptions = {},
): Promise<R[]> {
  return new Promise((resolve, reject) => {
    const results: R[] = [];
    if (Array.isArray(items)) results.length = items.length; // growing step by step takes longer than the calls
    new Lanes(items, concurrency, fn, options, inOrder as Harvest<R, number, Results<R>>, {
      results,
      resolve,
      reject,
    }).start(options.signal);
  });
}

interface Results<R> {
  readonly results: R[];
  readonly resolve: (results: R[]) => void;
  readonly reject: (reason: unknown) => void;
}

const inOrder: Harvest<unknown, number, Results<unknown>> = {
  keep({ results }, index, value) {
    results[index] = value;
  },
  finish({ results, resolve }, count) {
    results.length = count; // of a list that has become shorter meanwhile
    resolve(results);
  },
  fail: ({ reject }, reason) => reject(reason),
};
