/**
 * Bounded queue between producers and consumers: first in, first out, and a full one holds its producers back.
 * Watch its age beside its depth: a queue of steady depth whose items get older is being outrun.
 */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { ClosedError, QueueFullError, TimeoutError } from "../errors.ts";
import { checkInteger, checkMs, checkOneOf, checkWait } from "../internal/check.ts";
import { type NameOptions, register } from "../internal/names.ts";
import { Ring } from "../internal/ring.ts";
import { WaitList } from "../internal/wait-list.ts";
import type { WaitOptions } from "../policy.ts";

export interface QueueOptions extends NameOptions {
  /** What `put` does when there is no room: waits for it, or rejects with `QueueFullError`. @default "wait" */
  readonly whenFull?: "wait" | "reject" | undefined;
  /** Runs `timeoutMs` and `maxWaitMs`, and tells ages. @default systemClock */
  readonly clock?: Clock | undefined;
}

export interface BatchOptions extends WaitOptions {
  /** How long the first item may be kept waiting for more; 0 takes only what is there. @default 0 */
  readonly maxWaitMs?: number | undefined;
}

export type QueueStats = Readonly<{
  size: number;
  capacity: number;
  /** Age of the oldest item; 0 if there is none. */
  oldestAgeMs: number;
  /** Items accepted so far, and items handed out. */
  accepted: number;
  taken: number;
  /** Items turned away because there was no room or the queue had ended, those of waiting producers included. */
  rejected: number;
  waitingProducers: number;
  waitingConsumers: number;
  /** Calls of both sides that got nothing, because of their `timeoutMs` or because their signal aborted in a wait. */
  timedOut: number;
  aborted: number;
  closed: boolean;
}>;

/**
 * `put`, `take`, `takeBatch` and iteration wait; `offer`, `poll` and `pollBatch` answer at once, and throw only for a
 * bad argument. An item must not be a promise: `take` would await it.
 */
export class Queue<T> implements AsyncIterable<T> {
  // I1  #items.size <= capacity, and #putAts holds the instant each of them was brought
  // I2  producers wait only while the queue is full, consumers only while it is empty
  // I3  items leave in the order they were brought, to consumers in the order those came; no newcomer overtakes
  // I4  once ended, no producer waits; once ended and empty, or failed, no consumer does
  readonly capacity: number;
  readonly name: string | undefined;
  readonly #whenFull: "wait" | "reject";
  readonly #clock: Clock;
  readonly #items = new Ring<T>();
  readonly #putAts = new Ring<number>();
  readonly #producers = new WaitList<boolean, T>();
  readonly #consumers = new WaitList<T>();
  #state: "open" | "closed" | "failed" = "open";
  #endedBy: unknown;
  #closedBy: ClosedError | undefined;
  #accepted = 0;
  #rejected = 0;

  /** Room for `capacity` items, 1 at least. */
  constructor(capacity: number, options: QueueOptions = {}) {
    this.capacity = checkInteger("capacity", capacity, { min: 1 });
    this.#whenFull = checkOneOf("whenFull", options.whenFull ?? "wait", ["wait", "reject"]);
    this.#clock = options.clock ?? systemClock;
    this.name = options.name;
    register("queue", options, this);
  }

  /** Items that are in; those of waiting producers are not. */
  get size(): number {
    return this.#items.size;
  }

  /** Whether `close` or `fail` was called. */
  get closed(): boolean {
    return this.#state !== "open";
  }

  /** How long ago the oldest item was brought, the wait of its producer included; 0 if there is none. */
  get oldestAgeMs(): number {
    const putAt = this.#putAts.peek();
    return putAt === undefined ? 0 : this.#clock.now() - putAt;
  }

  stats(): QueueStats {
    const [producers, consumers] = [this.#producers, this.#consumers];
    return {
      size: this.size,
      capacity: this.capacity,
      oldestAgeMs: this.oldestAgeMs,
      accepted: this.#accepted,
      taken: this.#accepted - this.size,
      rejected: this.#rejected,
      waitingProducers: producers.size,
      waitingConsumers: consumers.size,
      timedOut: producers.timedOut + consumers.timedOut,
      aborted: producers.aborted + consumers.aborted,
      closed: this.closed,
    };
  }

  /** Resolves with true when the item is in. `ClosedError` once closed, the error once failed. */
  put(item: T, options: WaitOptions = {}): Promise<boolean> {
    try {
      checkWait(options);
      if (this.closed) throw this.#refuse(this.#endedBy);
      if (this.#accept(item)) return Promise.resolve(true);
      if (this.#whenFull === "reject") throw this.#refuse(new QueueFullError(this.capacity));
      this.#producers.refuseHaste(options);
      return this.#producers.wait(options, this.#clock, item);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** The oldest item, as soon as there is one. `ClosedError` once closed and empty, the error once failed. */
  take(options: WaitOptions = {}): Promise<T> {
    try {
      checkWait(options);
      if (this.size > 0 && this.#state !== "failed") return Promise.resolve(this.#next());
      if (this.closed) throw this.#endedBy;
      this.#consumers.refuseHaste(options);
      return this.#consumers.wait(options, this.#clock);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * At least one item and at most `max`, oldest first. `signal`, `timeoutMs` and the end of the queue reject the wait
   * for the first item; after it they only end the wait for more, and what was taken is the result.
   */
  async takeBatch(max: number, options: BatchOptions = {}): Promise<T[]> {
    checkInteger("max", max, { min: 1, infinity: true });
    const maxWaitMs = checkMs("maxWaitMs", options.maxWaitMs ?? 0);
    const { signal } = options;
    const batch = this.#fill([await this.take(options)], max);
    const until = this.#clock.now() + maxWaitMs;
    for (let leftMs = maxWaitMs; leftMs > 0 && batch.length < max; leftMs = until - this.#clock.now()) {
      const more = this.take({ signal, timeoutMs: leftMs });
      if (
        !(await more.then(
          (item) => batch.push(item),
          (error) => this.#endBatch(error, signal),
        ))
      )
        break;
      this.#fill(batch, max);
    }
    return batch;
  }

  /** True if the item is in; false if there is no room, or the queue has ended. */
  offer(item: T): boolean {
    const accepted = !this.closed && this.#accept(item);
    if (!accepted) this.#rejected += 1;
    return accepted;
  }

  /** The oldest item, or undefined. What nobody had taken when the queue failed can still be had. */
  poll(): T | undefined {
    return this.size > 0 ? this.#next() : undefined;
  }

  /** What is there, oldest first, at most `max` items. */
  pollBatch(max: number): T[] {
    checkInteger("max", max, { min: 1, infinity: true });
    return this.#fill([], max);
  }

  /** Producers, also those that wait, get `ClosedError` from now on; consumers get what is in, and then `ClosedError`. */
  close(): void {
    if (this.closed) return;
    this.#closedBy = new ClosedError("queue");
    this.#end("closed", this.#closedBy);
  }

  /** For the death of either side: whoever puts, takes or waits gets `error`, at once. The first error stays. */
  fail(error: unknown): void {
    if (this.#state !== "failed") this.#end("failed", error);
  }

  /** Takes item by item. Ends when the queue is closed and empty; throws the error if it fails. */
  [Symbol.asyncIterator](): AsyncIterableIterator<T, undefined> {
    return new Items(this, (error) => error === this.#closedBy);
  }

  #accept(item: T): boolean {
    const consumer = this.#consumers.shift();
    if (consumer !== undefined) consumer.grant(item); // handed over, never through #items: nobody can slip in (I3)
    else if (this.size < this.capacity) this.#add(item, this.#clock.now()); // overtakes nobody (I2)
    else return false;
    this.#accepted += 1;
    return true;
  }

  #next(): T {
    const item = this.#items.shift() as T;
    this.#putAts.shift();
    const producer = this.#producers.shift();
    if (producer !== undefined) {
      this.#add(producer.brought, producer.joinedAt);
      this.#accepted += 1;
      producer.grant(true);
    }
    return item;
  }

  #add(item: T, putAt: number): void {
    this.#items.push(item);
    this.#putAts.push(putAt);
  }

  #fill(batch: T[], max: number): T[] {
    while (batch.length < max && this.size > 0) batch.push(this.#next());
    return batch;
  }

  /** A batch that has waited its `maxWaitMs` counts as no timeout: it has what its caller asked for. */
  #endBatch(error: unknown, signal: AbortSignal | undefined): undefined {
    if (error instanceof TimeoutError && error !== this.#endedBy && error !== signal?.reason)
      this.#consumers.timedOut -= 1;
  }

  #refuse(error: unknown): unknown {
    this.#rejected += 1;
    return error;
  }

  #end(state: "closed" | "failed", reason: unknown): void {
    this.#state = state;
    this.#endedBy = reason;
    this.#rejected += this.#producers.size;
    this.#producers.rejectAll(reason);
    this.#consumers.rejectAll(reason); // who waits to take has found the queue empty (I2)
  }
}

/** Written by hand: an async generator takes half as long again, and its `return` waits for a `next` under way. */
class Items<T> implements AsyncIterableIterator<T, undefined> {
  readonly #queue: Queue<T>;
  readonly #isEnd: (error: unknown) => boolean;
  readonly #left = new AbortController();

  constructor(queue: Queue<T>, isEnd: (error: unknown) => boolean) {
    this.#queue = queue;
    this.#isEnd = isEnd;
  }

  next(): Promise<IteratorResult<T, undefined>> {
    return this.#queue.take(this.#left).then(toResult, this.#onEnd);
  }

  /** A `next` under way ends as well, and takes no item with it. */
  return(): Promise<IteratorReturnResult<undefined>> {
    this.#left.abort();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  readonly #onEnd = (error: unknown): IteratorReturnResult<undefined> => {
    if (this.#left.signal.aborted || this.#isEnd(error)) return { done: true, value: undefined };
    throw error;
  };
}

function toResult<T>(value: T): IteratorYieldResult<T> {
  return { done: false, value };
}
