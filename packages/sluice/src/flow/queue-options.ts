/** What all queues are told and tell: `Queue`, `PriorityQueue` and `DelayQueue` alike. */
import type { Clock } from "../clock/clock.ts";
import type { NameOptions } from "../internal/names.ts";
import type { WaitOptions } from "../policy.ts";

/**
 * What becomes of an item that finds no room: its producer waits, or is rejected with `QueueFullError`, or the item is
 * dropped and its `put` resolves with false, or another is evicted for it.
 */
export type WhenFull = "wait" | "reject" | "drop-newest" | "drop-oldest";

export interface QueueOptions<T> extends NameOptions {
  /** What becomes of an item that finds no room; a function is asked for each. @default "wait" */
  readonly whenFull?: WhenFull | ((item: T) => WhenFull) | undefined;
  /**
   * Gets each item that had been accepted and that nobody will take: evicted for another (`reason` is a
   * `QueueFullError`), or in the queue when it failed (`reason` is the error). What it throws is an unhandled rejection.
   */
  readonly onUndelivered?: ((item: T, reason: unknown) => void) | undefined;
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
  /** Places that are held without an item. */
  reserved: number;
  /** Age of the oldest item; 0 if there is none. */
  oldestAgeMs: number;
  /** Items accepted so far, and items handed out. */
  accepted: number;
  taken: number;
  /** The same for each second, since a look at these stats that was a second ago at least. */
  acceptedPerSecond: number;
  takenPerSecond: number;
  /** Items turned away because there was no room or the queue had ended, those of waiting producers included. */
  rejected: number;
  /** Items given up for want of room: those that came, and those that were evicted for them. */
  dropped: number;
  /** Accepted items that nobody will take: evicted, removed, or in the queue when it failed. */
  undelivered: number;
  waitingProducers: number;
  waitingConsumers: number;
  /** Workers of `consume` that are alive. */
  consumers: number;
  /** Calls of both sides that got nothing, because of their `timeoutMs` or because their signal aborted in a wait. */
  timedOut: number;
  aborted: number;
  closed: boolean;
}>;
