/** The tokens of one answer, and the connection that they come by. */
import type { Timeout } from "sluice";

export class TokenStream implements AsyncIterableIterator<string> {
  // I1  the connection is open until `ended` settles, and closed from then on
  /** Of the provider that answers. */
  readonly from: string;
  /** When all has been read, or the reader has left; rejects with what ended it before. */
  readonly ended: Promise<void>;
  readonly #chunks: AsyncIterator<string>;
  readonly #connection: AbortController;
  readonly #stall: Timeout;
  readonly #end: { resolve(): void; reject(reason: unknown): void };

  /** `stall` limits the wait for each token. `signal` ends it, as `connection` does, which is its own. */
  constructor(
    from: string,
    chunks: AsyncIterator<string>,
    { connection, signal, stall }: { connection: AbortController; signal: AbortSignal; stall: Timeout },
  ) {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.from = from;
    this.ended = promise;
    this.#chunks = chunks;
    this.#connection = connection;
    this.#stall = stall;
    this.#end = { resolve, reject };
    // Also if nobody reads: a stream that is never read ends with its deadline.
    signal.addEventListener("abort", () => this.#end.reject(signal.reason), { once: true });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<string, undefined>> {
    try {
      const result = await this.#stall.run(() => this.#chunks.next());
      if (result.done !== true) return result;
      return this.#leave();
    } catch (error) {
      this.#end.reject(error); // first: the abort would have its own say
      this.#connection.abort(error);
      throw error;
    }
  }

  async return(): Promise<IteratorResult<string, undefined>> {
    return this.#leave();
  }

  #leave(): IteratorResult<string, undefined> {
    this.#end.resolve();
    this.#connection.abort();
    return { done: true, value: undefined };
  }
}
