/** `mapLimit` for work in which one failure is no reason to stop: each item has its own outcome. */
import { type Harvest, Lanes, type MapFunction, type MapOptions } from "./lanes.ts";

/**
 * One record for each item, in the order of the items, as `Promise.allSettled` has them. All items are tried. It rejects
 * only with the source's error or the reason of `signal`; otherwise it does as `mapLimit` does.
 */
export function mapLimitSettled<T, R>(
  items: Iterable<T> | AsyncIterable<T>,
  concurrency: number,
  fn: MapFunction<T, R>,
  options: MapOptions = {},
): Promise<PromiseSettledResult<R>[]> {
  return new Promise((resolve, reject) => {
    const held: Records<R> = { records: [], resolve, reject };
    new Lanes(items, concurrency, fn, options, settled as Harvest<R, number, Records<R>>, held).start(options.signal);
  });
}

interface Records<R> {
  readonly records: PromiseSettledResult<R>[];
  readonly resolve: (records: PromiseSettledResult<R>[]) => void;
  readonly reject: (reason: unknown) => void;
}

const settled: Harvest<unknown, number, Records<unknown>> = {
  keep({ records }, index, value) {
    records[index] = { status: "fulfilled", value };
  },
  forgive({ records }, index, reason) {
    records[index] = { status: "rejected", reason };
  },
  finish: ({ records, resolve }) => resolve(records),
  fail: ({ reject }, reason) => reject(reason),
};
