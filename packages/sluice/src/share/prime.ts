/** Values that are known without a load. */
import type { BatchStore } from "./batch-options.ts";

/** Puts a value, or an error, into the cache of a batch, unless it has one by this id. */
export function prime<V>(cache: BatchStore<V>, id: unknown, value: V | Error): void {
  if (cache.get(id) !== undefined) return;
  const load = value instanceof Error ? Promise.reject(value) : Promise.resolve(value);
  load.catch(() => {}); // maybe nobody asks for it
  cache.set(id, load);
}
