/**
 * `mapLimit` whose results are read as they come: an async iterable that reads its source no faster than it is read
 * itself. For a chain of such steps, use `pipeline`.
 */
import { checkInteger } from "../internal/check.ts";
import { Ring } from "../internal/ring.ts";
import { type Harvest, Lanes, type MapFunction, type MapOptions } from "./lanes.ts";
import { untilClosed } from "./source-closing.ts";

export interface StreamOptions extends MapOptions {
  /** Whether results come in the order of the items; else in the order in which they are ready. @default true */
  readonly ordered?: boolean | undefined;
  /**
   * Items that may have been started and not been read, beyond `concurrency` of them; a slow item at the head of an
   * ordered stream then keeps fewer calls from starting. An integer >= 0. @default 0
   */
  readonly buffer?: number | undefined;
}

/**
 * The results of `fn(item, { signal, index })`, at most `concurrency` calls at a time. Nothing starts before the first
 * read. An early end, as by `break`, aborts the calls that run, and closes the source before the loop is left, unless that
 * is at its next item: then it is told to close, and not waited for.
 *
 * The first error ends the stream: the calls that run are aborted with it, the source is closed, and who reads gets
 * what was ready before it, and then the error as it is. An abort by `signal` is for who reads next, at once.
 */
export function mapStream<T, R>(
  items: Iterable<T> | AsyncIterable<T>,
  concurrency: number,
  fn: MapFunction<T, R>,
  options: StreamOptions = {},
): AsyncIterableIterator<R, undefined> {
  return new MapStream(items, concurrency, fn, options);
}

class MapStream<T, R> implements AsyncIterableIterator<R, undefined> {
  readonly #outlet: Outlet<R>;
  readonly #lanes: Lanes<T, R, Slot<R>, Outlet<R>>;
  readonly #signal: AbortSignal | undefined;
  #isStarted = false;

  constructor(
    items: Iterable<T> | AsyncIterable<T>,
    concurrency: number,
    fn: MapFunction<T, R>,
    options: StreamOptions,
  ) {
    const { signal, ordered = true, buffer = 0 } = options;
    this.#signal = signal;
    checkInteger("buffer", buffer, { min: 0 });
    this.#outlet = new Outlet(ordered, signal);
    this.#lanes = new Lanes(items, concurrency, fn, options, toOutlet as Harvest<R, Slot<R>, Outlet<R>>, this.#outlet);
    this.#lanes.room = concurrency + buffer;
    this.#outlet.inlet = this.#lanes;
  }

  next(): Promise<IteratorResult<R, undefined>> {
    try {
      this.#start();
      const result = this.#outlet.read(); // which may have made room
      if (!this.#outlet.isEnded) this.#lanes.pump();
      return result;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async return(): Promise<IteratorReturnResult<undefined>> {
    this.#outlet.end();
    const lanes = this.#lanes;
    const closed = lanes.end(this.#signal?.reason);
    if (closed !== undefined) await untilClosed(closed, lanes.answer, (error) => lanes.onAbort(error));
    return END;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  #start(): void {
    if (this.#isStarted || this.#outlet.isEnded) return;
    this.#isStarted = true;
    try {
      this.#lanes.start(this.#signal);
    } catch (error) {
      this.#outlet.end();
      throw error;
    }
  }
}

/** What a call gives that has no result to be read; for `pipeline`. */
export const SET_ASIDE: unique symbol = Symbol("set aside");

/** The place of one result. */
interface Slot<R> {
  isReady: boolean;
  value: R;
}

interface Reader<R> {
  readonly resolve: (result: IteratorResult<R, undefined>) => void;
  readonly reject: (reason: unknown) => void;
}

/** Where results wait for readers, or readers for results. */
class Outlet<R> {
  // I1  each result that has been begun and not been read takes one of the `room` there is
  // I2  #slots are in the order in which they will be read; a reader waits only while the first is not ready
  // I3  once ended, nobody waits and nothing is kept
  readonly #isOrdered: boolean;
  readonly #signal: AbortSignal | undefined;
  readonly #slots = new Ring<Slot<R>>();
  readonly #readers = new Ring<Reader<R>>();
  inlet: { room: number } = { room: 0 };
  #failure: { readonly reason: unknown } | undefined;
  #isComplete = false;
  isEnded = false;

  constructor(isOrdered: boolean, signal: AbortSignal | undefined) {
    this.#isOrdered = isOrdered;
    this.#signal = signal;
  }

  reserve(): Slot<R> {
    const slot: Slot<R> = { isReady: false, value: undefined as R };
    this.inlet.room -= 1;
    if (this.#isOrdered) this.#slots.push(slot);
    return slot;
  }

  keep(slot: Slot<R>, value: R): void {
    slot.isReady = true;
    slot.value = value;
    if (!this.#isOrdered) this.#slots.push(slot);
    while (this.#readers.size > 0 && this.#hasNext()) this.#readers.shift()?.resolve(this.#shift());
  }

  read(): Promise<IteratorResult<R, undefined>> {
    if (this.#hasNext()) return Promise.resolve(this.#shift());
    if (this.#failure !== undefined) {
      const { reason } = this.#failure;
      this.end();
      return Promise.reject(reason);
    }
    if (this.#isComplete || this.isEnded) return Promise.resolve(END);
    return new Promise((resolve, reject) => this.#readers.push({ resolve, reject }));
  }

  /** All results are in; those that have not been read are ready. */
  complete(): void {
    this.#isComplete = true;
    if (this.#readers.size > 0) this.end();
  }

  fail(reason: unknown): void {
    if (this.isEnded) return;
    if (this.#signal?.aborted === true) this.#dropSlots();
    this.#failure = { reason };
    const reader = this.#readers.shift();
    if (reader === undefined) return;
    reader.reject(reason);
    this.end();
  }

  end(): void {
    this.isEnded = true;
    this.#failure = undefined;
    this.#dropSlots();
    while (this.#readers.size > 0) this.#readers.shift()?.resolve(END);
  }

  #hasNext(): boolean {
    let first = this.#slots.peek();
    for (; first?.isReady === true && first.value === SET_ASIDE; first = this.#slots.peek()) this.#shift();
    return first?.isReady === true;
  }

  #shift(): IteratorYieldResult<R> {
    this.inlet.room += 1;
    return { done: false, value: this.#slots.shift()?.value as R };
  }

  #dropSlots(): void {
    while (this.#slots.size > 0) this.#slots.shift();
  }
}

const END: IteratorReturnResult<undefined> = { done: true, value: undefined };

const toOutlet: Harvest<unknown, Slot<unknown>, Outlet<unknown>> = {
  reserve: (outlet) => outlet.reserve(),
  keep: (outlet, slot, value) => outlet.keep(slot, value),
  finish: (outlet) => outlet.complete(),
  fail: (outlet, reason) => outlet.fail(reason),
};
