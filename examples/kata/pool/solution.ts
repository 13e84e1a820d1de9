export type Pool = typeof asyncPool;

export async function asyncPool<T, R>(
  limit: number,
  items: readonly T[],
  fn: (item: T, index: number, signal: AbortSignal) => Promise<R>,
): Promise<R[]> {
  if (!Number.isInteger(limit) || limit < 1) throw new RangeError(`limit must be an integer >= 1, got ${limit}`);
  const results: R[] = [];
  const stop = new AbortController();
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < items.length && !stop.signal.aborted) {
      const index = next++; // no await since the look, so nobody else has it
      try {
        results[index] = await fn(items[index] as T, index, stop.signal);
      } catch (error) {
        stop.abort(error); // before another worker looks
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, work));
  return results;
}
