/** One reader of a broadcast, with a buffer and a pace of its own. */
import type { Clock } from "../clock/clock.ts";
import { ClosedError, QueueFullError } from "../errors.ts";
import { Watcher } from "../internal/abort.ts";
import { checkInteger, checkOneOf, checkSignal, checkWait } from "../internal/check.ts";
import { dispose } from "../internal/dispose.ts";
import { type NameOptions, register } from "../internal/names.ts";
import { Ring } from "../internal/ring.ts";
import { firstLive, WaitList } from "../internal/wait-list.ts";
import type { WaitOptions } from "../policy.ts";
import type { WhenFull } from "./queue-options.ts";

export interface SubscribeOptions extends NameOptions {
  /** Items it may be behind. An integer >= 1. */
  readonly capacity: number;
  /**
   * What an item does that finds no room: it makes the publisher wait, and with it all other readers; or the newest or
   * the oldest item is dropped for this reader alone; or the subscription is ended, and its reader gets
   * `QueueFullError` after what it has. @default "wait"
   */
  readonly whenFull?: WhenFull | undefined;
  /** Ends it: whoever reads gets `signal.reason`. */
  readonly signal?: AbortSignal | undefined;
}

export type SubscriptionStats = Readonly<{
  /** How far it is behind: items it has not read yet. */
  size: number;
  capacity: number;
  /** Age of the oldest of them; 0 if there is none. */
  oldestAgeMs: number;
  /** Items read, and items it will never see for want of room. */
  taken: number;
  missed: number;
  waitingReaders: number;
  timedOut: number;
  aborted: number;
  closed: boolean;
}>;

/**
 * `take` and iteration wait, `poll` answers at once. Once the broadcast has been closed, what is left can be read, and
 * then `take` rejects with `ClosedError` and iteration ends. To leave a loop is to leave the broadcast, as `close` is.
 */
export interface Subscription<T> extends AsyncIterableIterator<T, undefined>, Disposable {
  readonly capacity: number;
  /** Items it has not read yet. */
  readonly size: number;
  /** Whether it has been left, or ended. */
  readonly closed: boolean;
  /** The oldest item it has not read, as soon as there is one. */
  take(options?: WaitOptions): Promise<T>;
  /** The same now, or undefined. */
  poll(): T | undefined;
  return(): Promise<IteratorReturnResult<undefined>>;
  /** Leaves. What it has not read is dropped, and no publisher waits for it any more. */
  close(): void;
  stats(): SubscriptionStats;
}

/** A subscription as the broadcast sees it. */
export interface Subscriber<T> extends Subscription<T> {
  readonly missed: number;
  /** Whether it got the item. */
  deliver(item: T, at: number): boolean;
  /** There will be no more items. What is in can be read before `reason`, unless it is `cut`. */
  end(reason: unknown, cut: boolean): void;
}

/** The broadcast as a subscription sees it. */
export interface Station<T> {
  readonly clock: Clock;
  /** A publisher must wait for it from now on, … */
  onFull(): void;
  /** … and not any more. */
  onRoom(): void;
  onLeft(subscriber: Subscriber<T>): void;
}

export function openSubscription<T>(options: SubscribeOptions, station: Station<T>): Subscriber<T> {
  return new BoundedSubscriber(options, station);
}

class BoundedSubscriber<T> extends Watcher implements Subscriber<T> {
  // I1  #items.size <= capacity, and #ats holds the instant at which each was published
  // I2  a reader waits only while nothing is in
  // I3  the station has been told `onFull` once more than `onRoom` exactly while it is open, full and makes wait
  readonly capacity: number;
  readonly #whenFull: WhenFull;
  readonly #station: Station<T>;
  readonly #items = new Ring<T>();
  readonly #ats = new Ring<number>();
  readonly #readers = new WaitList<T>();
  #isCut = false;
  #endedBy: unknown;
  /** Who reads this error has come to the end; any other is a failure. */
  #closedBy: ClosedError | undefined;
  #taken = 0;
  missed = 0;
  closed = false;

  constructor(options: SubscribeOptions, station: Station<T>) {
    super();
    this.capacity = checkInteger("capacity", options.capacity, { min: 1 });
    const choices = ["wait", "reject", "drop-newest", "drop-oldest"] as const;
    this.#whenFull = checkOneOf("whenFull", options.whenFull ?? "wait", choices);
    this.#station = station;
    checkSignal(options.signal);
    options.signal?.throwIfAborted();
    register("subscription", options, this);
    if (options.signal !== undefined) this.watch(options.signal);
  }

  get size(): number {
    return this.#items.size;
  }

  stats(): SubscriptionStats {
    const at = this.#ats.peek();
    return {
      size: this.size,
      capacity: this.capacity,
      oldestAgeMs: at === undefined ? 0 : Math.max(0, this.#station.clock.now() - at),
      taken: this.#taken,
      missed: this.missed,
      waitingReaders: this.#readers.size,
      timedOut: this.#readers.timedOut,
      aborted: this.#readers.aborted,
      closed: this.closed,
    };
  }

  take(options: WaitOptions = {}): Promise<T> {
    try {
      checkWait(options);
      if (this.size > 0 && !this.#isCut) return Promise.resolve(this.#next());
      if (this.closed) throw this.#endedBy;
      this.#readers.refuseHaste(options);
      return this.#readers.wait(options, this.#station.clock);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  poll(): T | undefined {
    return this.size > 0 ? this.#next() : undefined;
  }

  next(): Promise<IteratorResult<T, undefined>> {
    return this.take().then(toResult, this.#toEnd);
  }

  return(): Promise<IteratorReturnResult<undefined>> {
    this.close();
    return Promise.resolve(END);
  }

  close(): void {
    this.#leave((this.#closedBy ??= new ClosedError("subscription")));
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  [dispose](): void {
    this.close();
  }

  override onAbort(reason: unknown): void {
    this.#leave(reason);
  }

  deliver(item: T, at: number): boolean {
    const reader = firstLive(this.#readers);
    if (reader !== undefined) {
      this.#readers.remove(reader);
      this.#taken += 1;
      reader.grant(item);
      return true;
    }
    if (this.size === this.capacity) {
      this.missed += 1;
      if (this.#whenFull === "drop-newest") return false;
      if (this.#whenFull === "reject") {
        this.end(new QueueFullError(this.capacity), false);
        return false;
      }
      this.#items.shift();
      this.#ats.shift();
    }
    this.#items.push(item);
    this.#ats.push(at);
    if (this.#makesWait) this.#station.onFull();
    return true;
  }

  end(reason: unknown, cut: boolean): void {
    if (this.closed) return;
    const madeWait = this.#makesWait;
    this.closed = true;
    this.#endedBy = reason;
    this.#isCut = cut;
    if (!cut && reason instanceof ClosedError) this.#closedBy = reason;
    this.unwatch();
    this.#readers.rejectAll(reason);
    this.#station.onLeft(this);
    if (madeWait) this.#station.onRoom();
  }

  get #makesWait(): boolean {
    return !this.closed && this.#whenFull === "wait" && this.size === this.capacity;
  }

  readonly #toEnd = (error: unknown): IteratorReturnResult<undefined> => {
    if (error === this.#closedBy) return END;
    throw error;
  };

  #next(): T {
    const madeWait = this.#makesWait;
    const item = this.#items.shift() as T;
    this.#ats.shift();
    this.#taken += 1;
    if (madeWait) this.#station.onRoom();
    return item;
  }

  #leave(reason: unknown): void {
    this.end(reason, true);
    this.#isCut = true; // also of one that had ended, with items left
    this.#endedBy = reason;
    while (this.size > 0) this.#items.shift();
    while (this.#ats.size > 0) this.#ats.shift();
  }
}

const END: IteratorReturnResult<undefined> = { done: true, value: undefined };

function toResult<T>(value: T): IteratorYieldResult<T> {
  return { done: false, value };
}
