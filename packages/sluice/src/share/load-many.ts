/** Loads of many keys at a time. */
import type { LoadOptions } from "./batch-options.ts";

/** How the load of each key ended, in their order; `options` are for each. Rejects only if the signal aborts. */
export async function loadMany<K, V, O extends LoadOptions = LoadOptions>(
  loader: { load(key: K, options?: O): Promise<V> },
  keys: Iterable<K>,
  options?: O,
): Promise<PromiseSettledResult<V>[]> {
  const results = await Promise.allSettled(Array.from(keys, (key) => loader.load(key, options)));
  options?.signal?.throwIfAborted();
  return results;
}
