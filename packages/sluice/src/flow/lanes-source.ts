/** Where a map or a pipeline gets its items from: an iterable or an async iterable, read one item at a time. */
export interface Source<T> {
  /** Whether `next` promises its answer. */
  readonly isAsync: boolean;
  readonly iterator: Iterator<T> | AsyncIterator<T>;
}

export function openSource<T>(items: Iterable<T> | AsyncIterable<T>): Source<T> {
  const asyncIterator = (items as Partial<AsyncIterable<T>> | undefined)?.[Symbol.asyncIterator]?.();
  const iterator = asyncIterator ?? (items as Partial<Iterable<T>> | undefined)?.[Symbol.iterator]?.();
  if (iterator === undefined) throw new TypeError(`items must be iterable, got ${typeof items}`);
  return { isAsync: asyncIterator !== undefined, iterator };
}

/** For one that has neither ended nor failed, once: lets it give back what it holds. */
export async function closeSource<T>({ isAsync, iterator }: Source<T>, isInside: boolean): Promise<void> {
  if (isInside && !isAsync) await Promise.resolve(); // a generator can't be closed in the midst of its own code
  await iterator.return?.();
}
