import { asPlainPromise, Wait } from "../internal/wait.ts";
import type { QueueCore } from "./queue-core.ts";

/** Written by hand: an async generator takes half as long again, and its `return` waits for a `next` under way. */
export class Items<T> implements AsyncIterableIterator<T, undefined> {
  readonly #core: QueueCore<T, never>;
  #left: AbortController | undefined;
  #isOver = false;

  constructor(core: QueueCore<T, never>) {
    this.#core = core;
  }

  next(): Promise<IteratorResult<T, undefined>> {
    try {
      if (this.#isOver) return Promise.resolve(END);
      if (this.#core.canTake()) return Promise.resolve({ done: false, value: this.#core.next() });
      this.#left ??= new AbortController();
      const wait = new NextWait<T>(this.#core);
      return this.#core.joinConsumers(wait, this.#left.signal) as Promise<unknown> as Promise<
        IteratorResult<T, undefined>
      >;
    } catch (error) {
      return error === this.#core.closedBy ? Promise.resolve(END) : Promise.reject(error);
    }
  }

  /** A `next` under way ends as well, and takes no item with it. */
  return(): Promise<IteratorReturnResult<undefined>> {
    this.#isOver = true;
    this.#left?.abort(END);
    return Promise.resolve(END);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

const END: IteratorReturnResult<undefined> = Object.freeze({ done: true, value: undefined });

/** Settles with a result of iteration, in as many turns as if the item had been there. */
class NextWait<T> extends Wait<T> {
  readonly #core: QueueCore<T, never>;

  constructor(core: QueueCore<T, never>) {
    super(core.clock.now());
    this.#core = core;
  }

  override grant(value: T): void {
    super.grant({ done: false, value } as T);
  }

  override reject(reason: unknown): void {
    if (this.lane === undefined || !(reason === END || reason === this.#core.closedBy)) return super.reject(reason);
    this.lane.list.remove(this);
    super.grant(END as T);
  }
}

asPlainPromise(NextWait);
