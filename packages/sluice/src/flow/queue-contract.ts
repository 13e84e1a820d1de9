/**
 * What all queues between producers and consumers do alike: they differ only in the order in which items leave. Each
 * item goes one way: it is taken, or its producer is told that it isn't in, or it goes to `onUndelivered`.
 */
import { systemClock } from "../clock/system.ts";
import { checkInteger, checkMs, checkWait } from "../internal/check.ts";
import { register } from "../internal/names.ts";
import type { WaitOptions } from "../policy.ts";
import { consume, type ConsumeOptions, type Consumer } from "./consume.ts";
import { waitForMore } from "./queue-batch.ts";
import { type Line, PLACE, QueueCore } from "./queue-core.ts";
import { Items } from "./queue-iterator.ts";
import type { BatchOptions, QueueOptions, QueueStats } from "./queue-options.ts";
import { RateMeter } from "./queue-rates.ts";
import type { QueueStore } from "./queue-store.ts";
import type { Reservation } from "./reserve.ts";

/** The inside of a queue, for the other files of this topic. */
export let coreOf: <T, I extends object>(queue: BoundedQueue<T, I>) => QueueCore<T, I>;

/**
 * `put`, `take`, `takeBatch`, `reserve` and iteration wait; `offer`, `poll`, `pollBatch`, `peek` and `tryReserve` answer
 * at once, and throw only for a bad argument. An item must not be a promise: `take` would await it.
 */
export abstract class BoundedQueue<T, I extends object = object> implements AsyncIterable<T> {
  readonly capacity: number;
  readonly name: string | undefined;
  readonly #core: QueueCore<T, I>;
  readonly #rates: RateMeter;
  #consumers = 0;

  static {
    coreOf = (queue) => queue.#core;
  }

  protected constructor(
    kind: string,
    capacity: number,
    store: QueueStore<T, I>,
    options: QueueOptions<T>,
    lineOf?: LineOf<T, I>,
  ) {
    const { clock = systemClock } = options;
    this.capacity = capacity;
    this.#core = new QueueCore(this, capacity, store, clock, options, lineOf?.(this));
    this.#rates = new RateMeter(clock.now());
    this.name = options.name;
    register(kind, options, this);
  }

  /** Items that are in; those of waiting producers are not. */
  get size(): number {
    return this.#core.store.size;
  }

  /** Whether `close` or `fail` was called. */
  get closed(): boolean {
    return this.#core.isEnded;
  }

  /** How long ago the oldest item was brought, the wait of its producer included; 0 if there is none. */
  get oldestAgeMs(): number {
    const { store, producers, clock } = this.#core;
    const oldestAt = store.oldestAt ?? producers.first?.joinedAt;
    return oldestAt === undefined ? 0 : Math.max(0, clock.now() - oldestAt);
  }

  stats(): QueueStats {
    const { accepted, rejected, dropped, undelivered, reserved, producers, consumers, clock } = this.#core;
    const taken = accepted - undelivered - this.size;
    const [acceptedPerSecond, takenPerSecond] = this.#rates.look(clock.now(), accepted, taken);
    return {
      size: this.size,
      capacity: this.capacity,
      reserved,
      oldestAgeMs: this.oldestAgeMs,
      accepted,
      taken,
      acceptedPerSecond,
      takenPerSecond,
      rejected,
      dropped,
      undelivered,
      waitingProducers: producers.size,
      waitingConsumers: consumers.size,
      consumers: this.#consumers,
      timedOut: producers.timedOut + consumers.timedOut,
      aborted: producers.aborted + consumers.aborted,
      closed: this.closed,
    };
  }

  /** Resolves with true when the item is in, with false if it was dropped. `ClosedError` once closed, the error once failed. */
  put(item: T, options?: WaitOptions & I): Promise<boolean> {
    const core = this.#core;
    try {
      if (options !== undefined) checkWait(options);
      const entry = core.store.enter(item, options);
      const isIn = core.tryPut(entry);
      if (isIn !== undefined) return isIn ? IN : DROPPED;
      if (options !== undefined) core.producers.refuseHaste(options);
      options?.signal?.throwIfAborted(); // by `whenFull` or `priorityOf`
      const wait = core.producers.wait(options ?? {}, core.clock, entry, core.store.priorityOf(entry));
      return wait as Promise<boolean>;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** The next item, as soon as there is one. `ClosedError` once closed and empty, the error once failed. */
  take(options?: WaitOptions): Promise<T> {
    const core = this.#core;
    try {
      if (options !== undefined) checkWait(options);
      if (core.canTake()) return Promise.resolve(core.next());
      if (options !== undefined) core.consumers.refuseHaste(options);
      return core.waitForItem(options ?? {});
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * At least one item and at most `max`, in order. `signal`, `timeoutMs` and the end of the queue reject the wait for the
   * first item; after it they only end the wait for more, and what was taken is the result.
   */
  async takeBatch(max: number, options: BatchOptions = {}): Promise<T[]> {
    checkInteger("max", max, { min: 1, infinity: true });
    const maxWaitMs = checkMs("maxWaitMs", options.maxWaitMs ?? 0);
    const batch = this.#core.drainTo([await this.take(options)], max);
    return maxWaitMs > 0 ? waitForMore(this.#core, batch, max, maxWaitMs, options.signal) : batch;
  }

  /**
   * A place for an item to come, as soon as there is one, so that nothing is made that can't be put. With `whenFull:
   * "reject"` it is refused as an item would be, else it waits in the line of the producers. Not for capacity 0.
   */
  reserve(options: WaitOptions = {}): Promise<Reservation<T, I>> {
    const core = this.#core;
    try {
      checkWait(options);
      const place = this.#tryReserve();
      if (place === "reject") throw core.refusal();
      if (place !== "wait") return Promise.resolve(place);
      core.producers.refuseHaste(options);
      return core.producers.wait(options, core.clock, PLACE) as Promise<Reservation<T, I>>;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** A place now, or undefined. */
  tryReserve(): Reservation<T, I> | undefined {
    const place = this.#tryReserve();
    return typeof place === "string" ? undefined : place;
  }

  /** True if the item is in; false if there is no room for it, or the queue has ended. */
  offer(item: T, options?: I): boolean {
    const core = this.#core;
    const outcome = core.offer(core.store.enter(item, options));
    if (typeof outcome === "string") core.rejected += 1;
    return outcome === true;
  }

  /** The next item, or undefined. What nobody had taken when the queue failed can still be had, without `onUndelivered`. */
  poll(): T | undefined {
    return this.#core.hasNext() ? this.#core.next() : undefined;
  }

  /** What is there, in order, at most `max` items. */
  pollBatch(max: number): T[] {
    checkInteger("max", max, { min: 1, infinity: true });
    return this.#core.drainTo([], max);
  }

  /** The next item, left where it is; undefined if there is none. */
  peek(): T | undefined {
    const { store } = this.#core;
    return store.isReady ? store.peek() : undefined;
  }

  /**
   * Calls `fn` for each item, with so many `workers`, until the queue is closed and empty. If a call fails, the others get
   * to their end with an aborted signal, the queue fails with that error, so that producers learn of it, and so does the
   * promise. An item that was taken always gets to `fn`.
   */
  consume(fn: Consumer<T>, options: ConsumeOptions = {}): Promise<void> {
    return consume(this, fn, options, {
      count: (change) => void (this.#consumers += change),
      isEnd: (error) => error === this.#core.closedBy,
    });
  }

  /** Producers, also those that wait, get `ClosedError` from now on; consumers get what is in, and then `ClosedError`. */
  close(): void {
    this.#core.close("queue");
  }

  /** For the death of either side: whoever puts, takes or waits gets `error`, at once. The first error stays. */
  fail(error: unknown): void {
    this.#core.fail(error);
  }

  /** Takes item by item. Ends when the queue is closed and empty; throws the error if it fails. */
  [Symbol.asyncIterator](): AsyncIterableIterator<T, undefined> {
    return new Items(this.#core);
  }

  #tryReserve(): Reservation<T, I> | "wait" | "reject" {
    checkInteger("capacity for reservations", this.capacity, { min: 1 });
    return this.#core.tryReserve();
  }
}

/** Of waiting producers, where it isn't first come, first served. */
type LineOf<T, I extends object> = (owner: object) => Line<T, I>;

const IN = Promise.resolve(true);
const DROPPED = Promise.resolve(false);
