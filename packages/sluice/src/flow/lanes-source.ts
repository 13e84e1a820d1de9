/** Where a map gets its items from, if not from a list: an iterable or an async iterable, read one item at a time. */
export class Source<T> {
  /** Whether `next` promises its answer. */
  readonly isAsync: boolean;
  readonly #iterator: Iterator<T> | AsyncIterator<T>;
  #isInside = false;

  constructor(items: Iterable<T> | AsyncIterable<T>) {
    const { [Symbol.asyncIterator]: openAsync, [Symbol.iterator]: open } = Object(items) as Partial<
      Iterable<T> & AsyncIterable<T>
    >;
    this.isAsync = typeof openAsync === "function";
    const iterator = this.isAsync ? openAsync?.call(items) : open?.call(items);
    if (iterator === undefined)
      throw new TypeError(`items must be iterable, got ${items === null ? "null" : typeof items}`);
    this.#iterator = iterator;
  }

  /** Throws what the source throws. */
  next(): IteratorResult<T> | Promise<IteratorResult<T>> {
    this.#isInside = true;
    try {
      return this.#iterator.next();
    } finally {
      this.#isInside = false;
    }
  }

  /** For one that has neither ended nor failed, once: lets it give back what it holds. */
  async close(): Promise<void> {
    if (this.#isInside) await Promise.resolve(); // a generator can't be closed in the midst of its own code
    await this.#iterator.return?.();
  }
}
