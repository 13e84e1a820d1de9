import { coarseNow } from "../internal/coarse-now.ts";
import { asPlainPromise, Wait } from "../internal/wait.ts";
import type { QueueCore } from "./queue-core.ts";

/** Written by hand: an async generator takes half as long again, and its `return` waits for a `next` under way. */
export class Items<T> implements AsyncIterableIterator<T, undefined> {
  // I1  all waits of this iterator that are in line can be reached from #latest, since those before it leave before it
  readonly #core: QueueCore<T, never>;
  #latest: NextWait<T> | undefined;
  #isOver = false;

  constructor(core: QueueCore<T, never>) {
    this.#core = core;
  }

  next(): Promise<IteratorResult<T, undefined>> {
    const core = this.#core;
    try {
      if (this.#isOver) return Promise.resolve(END);
      if (core.canTake()) return Promise.resolve({ done: false, value: core.next() });
      const before = this.#latest?.lane === undefined ? undefined : this.#latest;
      this.#latest = core.joinConsumers(new NextWait<T>(core, before), undefined);
      return this.#latest as Promise<unknown> as Promise<IteratorResult<T, undefined>>;
    } catch (error) {
      return error === core.closedBy ? Promise.resolve(END) : Promise.reject(error);
    }
  }

  /** A `next` under way ends as well, and takes no item with it. */
  return(): Promise<IteratorReturnResult<undefined>> {
    this.#isOver = true;
    for (let [wait, before] = [this.#latest, this.#latest?.before]; wait !== undefined; wait = before) {
      before = wait.before;
      wait.reject(END);
    }
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
  /** Another `next` that is still under way, as long as this one is: or all that ever were would be kept. */
  before: NextWait<T> | undefined;

  constructor(core: QueueCore<T, never>, before: NextWait<T> | undefined) {
    super(coarseNow(core.clock));
    this.#core = core;
    this.before = before;
  }

  override disarm(): void {
    super.disarm();
    this.before = undefined;
  }

  override grant(value: T): void {
    super.grant({ done: false, value } as T);
  }

  override reject(reason: unknown): void {
    const list = this.lane?.list;
    if (list === undefined || !(reason === END || reason === this.#core.closedBy)) return super.reject(reason);
    list.remove(this);
    void list.onLeave?.(undefined, reason);
    super.grant(END as T);
  }
}

asPlainPromise(NextWait);
