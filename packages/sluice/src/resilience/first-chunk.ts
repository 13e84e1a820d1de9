/**
 * Makes the first chunk of a stream what an attempt succeeds with: `hedge` and `failover` then decide by it, and the
 * winner goes on to stream. `run(async ({ signal }) => firstChunk(await open(signal), { signal }))`
 */
import { Watcher } from "../internal/abort.ts";
import { checkSignal, wrongType } from "../internal/check.ts";
import { whenSettled } from "../internal/when-settled.ts";

export interface FirstChunkOptions {
  /** Whose abort cancels the stream: that of the attempt, which never aborts once it has won. */
  readonly signal?: AbortSignal | undefined;
}

/** What a `ReadableStream` has, in any runtime. */
export interface ReadableSource<T> {
  getReader(): {
    read(): Promise<{ readonly done: boolean; readonly value?: T | undefined }>;
    cancel(reason?: unknown): Promise<unknown>;
  };
}

/**
 * Resolves when the first chunk of `source` has come, or its end, with all its chunks, that one included. Rejects with
 * what it fails with before. Whoever has the chunks must read them to the end or leave the loop, which cancels `source`.
 */
export async function firstChunk<T>(
  source: AsyncIterable<T> | ReadableSource<T>,
  options: FirstChunkOptions = {},
): Promise<AsyncIterableIterator<T>> {
  checkSignal(options.signal);
  const chunks = new Chunks(inputOf(source));
  await chunks.open(options.signal);
  return chunks;
}

interface Input<T> {
  next(): Promise<IteratorResult<T, undefined>>;
  cancel(reason: unknown): Promise<unknown>;
}

class Chunks<T> extends Watcher implements AsyncIterableIterator<T> {
  // I1  it watches until the stream has ended, failed or been cancelled
  // I2  the stream is cancelled once at most, and asked for nothing afterwards
  readonly #input: Input<T>;
  /** Those who wait for a chunk. */
  readonly #rejects = new Set<(reason: unknown) => void>();
  #first: IteratorResult<T, undefined> | undefined;
  #isOver = false;
  #failure: { readonly reason: unknown } | undefined;

  constructor(input: Input<T>) {
    super();
    this.#input = input;
  }

  async open(signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted === true) this.onAbort(signal.reason);
    else if (signal !== undefined) this.watch(signal);
    this.#first = await this.#pull();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<T, undefined>> {
    const first = this.#first;
    if (first === undefined) return this.#pull();
    this.#first = undefined;
    return Promise.resolve(first);
  }

  async return(): Promise<IteratorResult<T, undefined>> {
    this.#first = undefined;
    if (!this.#isOver) {
      this.#end();
      await this.#input.cancel(undefined);
    }
    return { done: true, value: undefined };
  }

  override onAbort(reason: unknown): void {
    this.#first = undefined;
    this.#failure = { reason };
    this.#end();
    for (const reject of this.#rejects) reject(reason);
    this.#rejects.clear();
    this.#input.cancel(reason).catch(() => {}); // whoever reads has the reason
  }

  #pull(): Promise<IteratorResult<T, undefined>> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) throw this.#failure.reason;
      if (this.#isOver) return resolve({ done: true, value: undefined });
      this.#rejects.add(reject);
      void whenSettled(
        this.#input.next(),
        (result) => {
          this.#rejects.delete(reject);
          if (result.done === true) this.#end();
          resolve(result);
        },
        (error) => {
          this.#rejects.delete(reject);
          this.#end();
          reject(error);
        },
      );
    });
  }

  #end(): void {
    this.#isOver = true;
    this.unwatch();
  }
}

/** What throws, or gives what is no result, is a rejection, whatever it is: sources are foreign code. */
function inputOf<T>(source: Partial<AsyncIterable<T> & ReadableSource<T>> | null | undefined): Input<T> {
  if (typeof source?.getReader === "function") {
    const reader = source.getReader();
    return {
      next: async () => resultOf<T>(await reader.read()),
      cancel: async (reason) => reader.cancel(reason),
    };
  }
  const iterator = source?.[Symbol.asyncIterator]?.();
  if (iterator === undefined) throw wrongType("source", source, "an async iterable or a readable stream");
  return { next: async () => resultOf<T>(await iterator.next()), cancel: async () => iterator.return?.() };
}

function resultOf<T>(result: unknown): IteratorResult<T, undefined> {
  if (typeof result === "object" && result !== null) return result as IteratorResult<T, undefined>;
  throw new TypeError(`a result must be an object, got ${result === null ? "null" : typeof result}`);
}
