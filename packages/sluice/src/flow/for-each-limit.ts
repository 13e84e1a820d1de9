/**
 * `mapLimit` that keeps no results: for work that is done for its effect, and for sources that never end. The source
 * is read no faster than the work is done, and memory doesn't grow with it.
 */
import { type Harvest, Lanes, type MapFunction, type MapOptions } from "./lanes.ts";

/** Resolves when the source has ended and all calls have; otherwise it does as `mapLimit` does. */
export function forEachLimit<T>(
  items: Iterable<T> | AsyncIterable<T>,
  concurrency: number,
  fn: MapFunction<T, unknown>,
  options: MapOptions = {},
): Promise<void> {
  return new Promise((resolve, reject) => {
    new Lanes(items, concurrency, fn, options, nowhere, { resolve, reject }).start(options.signal);
  });
}

interface End {
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

const nowhere: Harvest<unknown, unknown, End> = {
  keep: () => {},
  finish: ({ resolve }) => resolve(),
  fail: ({ reject }, reason) => reject(reason),
};
