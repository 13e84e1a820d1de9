/**
 * Bounded queue whose items can be taken once they are due, the one that is due first before all others. It keeps one
 * timer however many items it has, and none while nobody waits. It lives in memory; what must outlive the process is a job.
 */
import { systemClock } from "../clock/system.ts";
import { checkInteger } from "../internal/check.ts";
import { DelayStore } from "./delay-queue-store.ts";
import { BoundedQueue, coreOf } from "./queue-contract.ts";
import type { QueueOptions } from "./queue-options.ts";

export interface DelayItemOptions {
  /** How long it can't be taken: at least 0, however long; `Infinity` until it is removed. @default 0 */
  readonly delayMs?: number | undefined;
  /** The same as an instant, in milliseconds since the Unix epoch; what has passed is due at once. */
  readonly dueAt?: number | undefined;
}

/**
 * The delay runs from the call of `put`, also while that waits for room, and jumps of the wall clock don't change it.
 * Ages count from when an item was due. `whenFull: "drop-oldest"` evicts what is due first. Once closed, consumers still
 * get what is in, each item when it is due. An error of the clock's rejects those who wait, and loses no item.
 */
export class DelayQueue<T> extends BoundedQueue<T, DelayItemOptions> {
  readonly #store: DelayStore<T>;

  /** Room for `capacity` items, due or not: an integer >= 1. */
  constructor(capacity: number, options: QueueOptions<T> = {}) {
    checkInteger("capacity", capacity, { min: 1 });
    const store = new DelayStore<T>(options.clock ?? systemClock);
    super("delay-queue", capacity, store, options);
    this.#store = store;
    store.onReady = () => coreOf(this).onReady();
    store.onFault = (error) => coreOf(this).consumers.rejectAll(error);
  }

  /**
   * Takes an item out, of those that are the same the one due first, and says whether there was one. O(log size), and
   * O(same); the first call is O(size), and from then on each item takes some more room.
   */
  remove(item: T): boolean {
    const isOut = this.#store.remove(item);
    if (isOut) coreOf(this).onRemoved();
    return isOut;
  }
}
