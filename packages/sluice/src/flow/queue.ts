/**
 * Bounded queue between producers and consumers: first in, first out, and a full one holds its producers back.
 * Watch its age beside its depth: a queue of steady depth whose items get older is being outrun.
 */
import { systemClock } from "../clock/system.ts";
import { checkInteger } from "../internal/check.ts";
import { BoundedQueue } from "./queue-contract.ts";
import type { QueueOptions } from "./queue-options.ts";
import { RingStore } from "./queue-ring-store.ts";

/**
 * With a `name` its ages are exact. Without one the clock is read for one of 16 items only (of 8 below a capacity of 256,
 * and so on: all below 32) and when a backlog begins, so that an age may be told too low: by as much as the next few
 * items came later, and for an item that is alone, by what had passed when somebody looked first.
 */
export class Queue<T> extends BoundedQueue<T> {
  /** Room for `capacity` items, an integer >= 0. With 0 it is a hand-off: each `put` meets a `take`. */
  constructor(capacity: number, options: QueueOptions<T> = {}) {
    checkInteger("capacity", capacity, { min: 0 });
    const clock = options.clock ?? systemClock;
    super("queue", capacity, new RingStore<T>(clock, stampEvery(capacity, options)), options);
  }
}

/** So that the items between two stamps are few beside those that are in when it is full. */
function stampEvery(capacity: number, { name }: QueueOptions<never>): number {
  if (name !== undefined) return 1;
  let every = 1;
  while (every < 16 && 32 * every <= capacity) every *= 2;
  return every;
}
