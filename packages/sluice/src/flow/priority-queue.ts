/**
 * Bounded queue in which the item of the highest priority leaves first, and among equals the one that came first. What
 * waits gains priority, so that the least is not starved by a steady stream of the more important.
 */
import { systemClock } from "../clock/system.ts";
import { checkFunction, checkInteger, checkMs } from "../internal/check.ts";
import { PriorityWaitList } from "../internal/priority-wait-list.ts";
import { PriorityStore } from "./priority-queue-store.ts";
import { BoundedQueue, coreOf } from "./queue-contract.ts";
import type { QueueOptions } from "./queue-options.ts";

export interface PriorityQueueOptions<T> extends QueueOptions<T> {
  /** The priority of what is put without one. @default 0 for all */
  readonly priorityOf?: ((item: T) => number) | undefined;
  /** An item gains one step of priority each time it has been in for this long; `Infinity` for none. @default 1_000 */
  readonly agingMs?: number | undefined;
}

export interface PriorityItemOptions {
  /** Higher leaves first. Any finite number. @default what `priorityOf` says */
  readonly priority?: number | undefined;
}

/**
 * Putting and taking is O(log priorities). `whenFull: "drop-oldest"` evicts the oldest item of the lowest priority, and
 * drops an item whose own is lower still; of waiting producers, too, the highest priority is let in first.
 */
export class PriorityQueue<T> extends BoundedQueue<T, PriorityItemOptions> {
  readonly #store: PriorityStore<T>;

  /** Room for `capacity` items, an integer >= 0. */
  constructor(capacity: number, options: PriorityQueueOptions<T> = {}) {
    checkInteger("capacity", capacity, { min: 0 });
    const { clock = systemClock, priorityOf } = options;
    if (priorityOf !== undefined) checkFunction("priorityOf", priorityOf);
    const agingMs = checkMs("agingMs", options.agingMs ?? 1_000);
    const store = new PriorityStore<T>(clock, agingMs, priorityOf);
    super("priority-queue", capacity, store, options, (owner) => new PriorityWaitList({ owner, agingMs }));
    this.#store = store;
  }

  /** Takes an item out, the oldest of those that are the same, and says whether there was one. O(size). */
  remove(item: T): boolean {
    const isOut = this.#store.remove(item);
    if (isOut) coreOf(this).onRemoved();
    return isOut;
  }
}
