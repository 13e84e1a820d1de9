/** A `Limiter` as one function, for who knows p-limit: the whole of it is behind `limiter`. */
import type { Task } from "../policy.ts";
import type { MapFunction, MapOptions } from "./lanes.ts";
import type { LimiterOptions, LimiterRunOptions } from "./limiter/options.ts";
import { Limiter } from "./limiter.ts";
import { mapLimit } from "./map-limit.ts";

export interface Limit {
  <T>(fn: Task<T>, options?: LimiterRunOptions): Promise<T>;
  /** Has the rest: what runs and waits, `resize`, `clear`, `pause`, `close`. */
  readonly limiter: Limiter;
  /**
   * As `mapLimit`, within the limit: at most as many items are handed in at a time as slots there were when it began, so
   * that a long list fills no line, and others get their turns in between. `fn`'s signal aborts with the limiter, too.
   */
  map<T, R>(
    items: Iterable<T> | AsyncIterable<T>,
    fn: MapFunction<T, R>,
    options?: LimiterRunOptions & MapOptions,
  ): Promise<R[]>;
}

/** `const limit = limiter(8); await limit(() => fetch(url))` */
export function limiter(concurrency: number, options?: LimiterOptions): Limit {
  const own = new Limiter(concurrency, options);
  const limit = <T>(fn: Task<T>, wait?: LimiterRunOptions): Promise<T> => own.run(fn, wait);
  const map: Limit["map"] = (items, fn, each = {}) => {
    const lanes = Math.min(own.concurrency, Number.MAX_SAFE_INTEGER);
    if (typeof fn !== "function") return mapLimit(items, lanes, fn, each); // which says so
    const inSlot: typeof fn = (item, { index, signal }) =>
      own.run((context) => fn(item, { index, signal: context.signal ?? signal }), { ...each, signal });
    return mapLimit(items, lanes, inSlot, each);
  };
  return Object.assign(limit, { limiter: own, map });
}
