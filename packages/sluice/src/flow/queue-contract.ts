/**
 * What all queues between producers and consumers do alike: they differ only in the order in which items leave. Each
 * item goes one way: it is taken, or its producer is told that it isn't in, or it goes to `onUndelivered`.
 */
import type { Clock } from "../clock/clock.ts";
import { ClosedError, QueueFullError } from "../errors.ts";
import { checkInteger, checkMs, checkOneOf, checkWait } from "../internal/check.ts";
import { register } from "../internal/names.ts";
import type { Wait } from "../internal/wait.ts";
import { WaitList } from "../internal/wait-list.ts";
import type { WaitOptions } from "../policy.ts";
import { consume, type ConsumeOptions, type Consumer } from "./consume.ts";
import { waitForMore } from "./queue-batch.ts";
import { Items } from "./queue-iterator.ts";
import type { QueueLines } from "./queue-lines.ts";
import type { BatchOptions, QueueOptions, QueueStats, WhenFull } from "./queue-options.ts";
import { RateMeter } from "./queue-rates.ts";
import type { QueueStore } from "./queue-store.ts";
import { issueReservation, type PlaceKeeper, type Reservation } from "./reserve.ts";

/** How a kind of queue differs from others. */
export interface QueueKind<T, I> {
  readonly kind: string;
  readonly store: QueueStore<T, I>;
  readonly clock: Clock;
  /** Of waiting producers, where items have priorities. */
  readonly agingMs?: number | undefined;
}

/** The inside of a queue, for the other files of this topic. */
export let linesOf: <T, I extends object>(queue: BoundedQueue<T, I>) => QueueLines<T, I>;

/**
 * `put`, `take`, `takeBatch`, `reserve` and iteration wait; `offer`, `poll`, `pollBatch` and `tryReserve` answer at
 * once, and throw only for a bad argument. An item must not be a promise: `take` would await it.
 */
export abstract class BoundedQueue<T, I extends object = object> implements AsyncIterable<T> {
  // I1  #store.size + #reserved <= capacity
  // I2  producers wait only while there is no room, consumers only while no item is ready; when both do, the producers
  //     want a place only, or what is in must ripen
  // I3  items leave in the order of the store, to consumers in the order those came; no newcomer overtakes
  // I4  once ended, no producer waits; once failed, or closed with nothing in and no place held, no consumer does
  readonly capacity: number;
  readonly name: string | undefined;
  readonly #store: QueueStore<T, I>;
  readonly #clock: Clock;
  readonly #whenFull: WhenFull | ((item: T) => WhenFull);
  readonly #onUndelivered: ((item: T, reason: unknown) => void) | undefined;
  readonly #producers: WaitList<Granted<T, I>, unknown>;
  readonly #consumers: WaitList<T>;
  readonly #rates: RateMeter;
  #state: "open" | "closed" | "failed" = "open";
  #endedBy: unknown;
  #closedBy: ClosedError | undefined;
  #reserved = 0;
  #accepted = 0;
  #rejected = 0;
  #dropped = 0;
  #undelivered = 0;
  #workers = 0;
  #lines: QueueLines<T, I> | undefined;
  #keeper: PlaceKeeper<T, I> | undefined;

  static {
    linesOf = (queue) => queue.#asLines();
  }

  protected constructor(capacity: number, options: QueueOptions<T>, kind: QueueKind<T, I>) {
    const { whenFull = "wait" } = options;
    this.capacity = capacity;
    this.#store = kind.store;
    this.#clock = kind.clock;
    this.#whenFull = typeof whenFull === "function" ? whenFull : checkPolicy(whenFull);
    this.#onUndelivered = options.onUndelivered;
    this.#producers = new WaitList({ agingMs: kind.agingMs });
    this.#consumers = new WaitList<T>({ onLeave: this.#store.expect && (() => this.#expect()) });
    this.#rates = new RateMeter(this.#clock.now());
    this.name = options.name;
    register(kind.kind, options, this);
  }

  /** Items that are in; those of waiting producers are not. */
  get size(): number {
    return this.#store.size;
  }

  /** Whether `close` or `fail` was called. */
  get closed(): boolean {
    return this.#state !== "open";
  }

  /** How long ago the oldest item was brought, the wait of its producer included; 0 if there is none. */
  get oldestAgeMs(): number {
    const { oldestAt = this.#producers.first?.joinedAt } = this.#store;
    return oldestAt === undefined ? 0 : Math.max(0, this.#clock.now() - oldestAt);
  }

  stats(): QueueStats {
    const [producers, consumers] = [this.#producers, this.#consumers];
    const [accepted, taken] = [this.#accepted, this.#accepted - this.size - this.#undelivered];
    const [acceptedPerSecond, takenPerSecond] = this.#rates.look(this.#clock.now(), accepted, taken);
    return {
      size: this.size,
      capacity: this.capacity,
      reserved: this.#reserved,
      oldestAgeMs: this.oldestAgeMs,
      accepted,
      taken,
      acceptedPerSecond,
      takenPerSecond,
      rejected: this.#rejected,
      dropped: this.#dropped,
      undelivered: this.#undelivered,
      waitingProducers: producers.size,
      waitingConsumers: consumers.size,
      consumers: this.#workers,
      timedOut: producers.timedOut + consumers.timedOut,
      aborted: producers.aborted + consumers.aborted,
      closed: this.closed,
    };
  }

  /** Resolves with true when the item is in, with false if it was dropped. `ClosedError` once closed, the error once failed. */
  put(item: T, options?: WaitOptions & I): Promise<boolean> {
    try {
      if (options !== undefined) checkWait(options);
      const entry = this.#store.enter(item, options);
      const isIn = this.#tryPut(entry);
      if (isIn !== undefined) return isIn ? IN : DROPPED;
      if (options !== undefined) this.#producers.refuseHaste(options);
      const priority = this.#store.priorityOf(entry);
      return this.#producers.wait(options ?? {}, this.#clock, entry, priority) as Promise<boolean>;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** The next item, as soon as there is one. `ClosedError` once closed and empty, the error once failed. */
  take(options?: WaitOptions): Promise<T> {
    try {
      if (options !== undefined) checkWait(options);
      if (this.#canTake()) return Promise.resolve(this.#next());
      if (options !== undefined) this.#consumers.refuseHaste(options);
      const wait = this.#consumers.wait(options ?? {}, this.#clock);
      this.#expect();
      return wait;
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
    const batch = this.#fill([await this.take(options)], max);
    if (maxWaitMs === 0 || batch.length === max) return batch;
    return waitForMore(this.#asLines(), batch, max, maxWaitMs, options.signal);
  }

  /**
   * A place for an item to come, as soon as there is one: what can be put has not to be thrown away. With `whenFull:
   * "reject"` it is refused as an item would be, otherwise it waits in the line of the producers. Not for capacity 0.
   */
  reserve(options: WaitOptions = {}): Promise<Reservation<T, I>> {
    try {
      checkWait(options);
      const place = this.tryReserve();
      if (place !== undefined) return Promise.resolve(place);
      this.#refuseIfEnded();
      if (this.#whenFull === "reject") throw this.#refuse(new QueueFullError(this.capacity));
      this.#producers.refuseHaste(options);
      return this.#producers.wait(options, this.#clock, PLACE) as Promise<Reservation<T, I>>;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** A place now, or undefined. */
  tryReserve(): Reservation<T, I> | undefined {
    checkInteger("capacity of a queue with reservations", this.capacity, { min: 1 });
    return this.closed || this.#free <= 0 ? undefined : this.#issue();
  }

  /** True if the item is in; false if there is no room for it, or the queue has ended. */
  offer(item: T, options?: I): boolean {
    const entry = this.#store.enter(item, options);
    const outcome = this.closed ? "reject" : this.#place(entry);
    if (typeof outcome === "string") this.#rejected += 1;
    return outcome === true;
  }

  /** The next item, or undefined. What nobody had taken when the queue failed can still be had, unless it was undelivered. */
  poll(): T | undefined {
    return this.#hasNext() ? this.#next() : undefined;
  }

  /** What is there, in order, at most `max` items. */
  pollBatch(max: number): T[] {
    checkInteger("max", max, { min: 1, infinity: true });
    return this.#fill([], max);
  }

  /** The item that would be next, left where it is; undefined if there is none. */
  peek(): T | undefined {
    return this.#store.isReady ? this.#store.peek() : undefined;
  }

  /** Calls `fn` for each item, by so many workers, until the queue is closed and empty. If a call fails, so do the rest and the queue. */
  consume(fn: Consumer<T>, options: ConsumeOptions = {}): Promise<void> {
    const count = (change: 1 | -1): void => void (this.#workers += change);
    const isEnd = (error: unknown): boolean => error === this.#closedBy;
    return consume({ take: (wait) => this.take(wait), fail: (error) => this.fail(error), isEnd, count }, fn, options);
  }

  /** Producers, also those that wait, get `ClosedError` from now on; consumers get what is in, and then `ClosedError`. */
  close(): void {
    if (this.closed) return;
    this.#closedBy = new ClosedError("queue");
    this.#end("closed", this.#closedBy);
  }

  /** For the death of either side: whoever puts, takes or waits gets `error`, at once. The first error stays. */
  fail(error: unknown): void {
    if (this.#state === "failed") return;
    this.#end("failed", error);
    if (this.#onUndelivered !== undefined) for (const item of this.#store.clear()) this.#lose(item, error);
  }

  /** Takes item by item. Ends when the queue is closed and empty; throws the error if it fails. */
  [Symbol.asyncIterator](): AsyncIterableIterator<T, undefined> {
    return new Items(this.#asLines());
  }

  get #free(): number {
    return this.capacity - this.#store.size - this.#reserved;
  }

  get #isOver(): boolean {
    return this.#state === "failed" || (this.closed && this.size === 0 && this.#reserved === 0);
  }

  #hasNext(): boolean {
    return this.#store.isReady || (this.#producers.size > 0 && this.#giver() !== undefined);
  }

  #canTake(): boolean {
    if (this.#state !== "failed" && this.#hasNext()) return true;
    if (this.#isOver) throw this.#endedBy;
    return false;
  }

  #next(): T {
    if (!this.#store.isReady) return this.#meet();
    const item = this.#store.shift();
    if (this.#producers.size > 0) this.#admit();
    if (this.#state === "closed") this.#settleEnd();
    return item;
  }

  /** Who can hand over an item past the store, because nothing is in: all places are held, or there is none. */
  #giver(): Wait<Granted<T, I>, unknown> | undefined {
    if (this.size > 0 || this.#store.expect !== undefined) return undefined;
    const first = firstLive(this.#producers);
    return first?.brought === PLACE ? this.#producers.live().find(({ brought }) => brought !== PLACE) : first;
  }

  #meet(): T {
    const producer = this.#giver() as Wait<Granted<T, I>, unknown>;
    this.#producers.remove(producer);
    this.#accepted += 1;
    producer.grant(true);
    return this.#store.itemOf(producer.brought);
  }

  #fill(batch: T[], max: number): T[] {
    while (batch.length < max && this.#hasNext()) batch.push(this.#next());
    return batch;
  }

  #accept(entry: unknown): boolean {
    const consumer =
      this.#consumers.size > 0 && this.#store.expect === undefined ? firstLive(this.#consumers) : undefined;
    if (consumer !== undefined) {
      this.#consumers.remove(consumer);
      consumer.grant(this.#store.itemOf(entry)); // handed over, never through the store: nobody can slip in (I3)
    } else if (this.#free > 0) this.#store.add(entry); // overtakes nobody (I2)
    else return false;
    this.#accepted += 1;
    return true;
  }

  /** Whether it is in, or why not. */
  #place(entry: unknown): boolean | "wait" | "reject" {
    if (this.#accept(entry)) return true;
    let policy = this.#whenFull;
    if (typeof policy === "function") {
      policy = checkPolicy(policy(this.#store.itemOf(entry)));
      if (this.closed) return "reject"; // all may have changed meanwhile
      if (this.#accept(entry)) return true;
    }
    if (policy === "wait" || policy === "reject") return policy;
    this.#dropped += 1;
    const evicted = policy === "drop-oldest" ? this.#store.evict(entry) : undefined;
    if (evicted === undefined) return false;
    this.#accept(entry);
    this.#lose(evicted.item, new QueueFullError(this.capacity));
    return true;
  }

  #tryPut(entry: unknown): boolean | undefined {
    this.#refuseIfEnded();
    const outcome = this.#place(entry);
    if (outcome === "wait") return undefined;
    if (outcome !== "reject") return outcome;
    this.#refuseIfEnded();
    throw this.#refuse(new QueueFullError(this.capacity));
  }

  /** Lets in who waits, as long as there is room. */
  #admit(): void {
    while (this.#free > 0) {
      const producer = firstLive(this.#producers);
      if (producer === undefined) return;
      this.#producers.remove(producer);
      if (producer.brought === PLACE) producer.grant(this.#issue());
      else {
        this.#accepted += 1;
        this.#store.add(producer.brought, producer.joinedAt);
        producer.grant(true);
      }
    }
  }

  #issue(): Reservation<T, I> {
    this.#reserved += 1;
    this.#keeper ??= {
      enter: (item, options) => this.#store.enter(item, options),
      fill: (entry) => {
        this.#reserved -= 1;
        const isIn = this.#state !== "failed" && this.#accept(entry);
        this.#vacated();
        return isIn;
      },
      vacate: () => {
        this.#reserved -= 1;
        this.#vacated();
      },
    };
    return issueReservation(this.#keeper);
  }

  #vacated(): void {
    if (this.#state === "open") this.#admit();
    else this.#settleEnd();
  }

  /** Only for items that ripen: gives what is ready to who waits for it. */
  #serve(): void {
    for (let consumer = firstLive(this.#consumers); consumer !== undefined; consumer = firstLive(this.#consumers)) {
      if (!this.#store.isReady) break;
      this.#consumers.remove(consumer);
      consumer.grant(this.#next());
    }
    this.#expect();
  }

  #expect(): void {
    this.#store.expect?.(this.#consumers.size > 0);
  }

  #lose(item: T, reason: unknown): void {
    this.#undelivered += 1;
    try {
      this.#onUndelivered?.(item, reason);
    } catch (error) {
      void Promise.reject(error); // seen as unhandled; the caller whose item came has done nothing wrong
    }
  }

  #refuseIfEnded(): void {
    if (this.closed) throw this.#refuse(this.#endedBy);
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
    this.#settleEnd();
  }

  #settleEnd(): void {
    if (this.#isOver) this.#consumers.rejectAll(this.#endedBy);
  }

  #asLines(): QueueLines<T, I> {
    return (this.#lines ??= {
      clock: this.#clock,
      isOver: () => this.#isOver,
      isEnd: (error) => error === this.#closedBy,
      canTake: () => this.#canTake(),
      next: () => this.#next(),
      fill: (batch, max) => this.#fill(batch, max),
      awaitItem: (wait, signal) => {
        void this.#consumers.join(wait, signal, this.#clock);
        this.#expect();
      },
      enter: (item, options) => this.#store.enter(item, options),
      tryPut: (entry) => this.#tryPut(entry),
      awaitRoom: (wait) => {
        void this.#producers.join(wait, undefined, this.#clock, this.#store.priorityOf(wait.brought));
      },
      onReady: () => this.#serve(),
      onLeft: (count) => {
        this.#undelivered += count;
        this.#vacated();
      },
    });
  }
}

/** To a producer: whether its item is in, or the place that it wanted. */
export type Granted<T, I extends object> = boolean | Reservation<T, I>;

const IN = Promise.resolve(true);
const DROPPED = Promise.resolve(false);

/** Brought by who waits for a place only. */
const PLACE: unique symbol = Symbol("place");

function checkPolicy(policy: WhenFull): WhenFull {
  return checkOneOf("whenFull", policy, ["wait", "reject", "drop-newest", "drop-oldest"]);
}

/** Whose signal has aborted learns of it first, and gets nothing. */
function firstLive<T, B>(line: WaitList<T, B>): Wait<T, B> | undefined {
  let { first } = line;
  for (; first?.isDoomed === true; { first } = line) first.onAbort(first.watchers?.signal.reason);
  return first;
}
