/** How batches, iteration and `select` reach the two lines of a queue, to stand in them with waits of their own. */
import type { Clock } from "../clock/clock.ts";
import type { Wait } from "../internal/wait.ts";
import type { Reservation } from "./reserve.ts";

export interface QueueLines<T, I extends object = never> {
  readonly clock: Clock;
  /** Whether no consumer will get anything any more. */
  isOver(): boolean;
  /** Whether `error` is how a consumer hears of `close`. */
  isEnd(error: unknown): boolean;
  /** Whether a consumer gets an item now; throws if it never will. */
  canTake(): boolean;
  /** Only if there is one. */
  next(): T;
  /** Adds what is there to `batch`, until it has `max`. */
  fill(batch: T[], max: number): T[];
  /** Joins the consumers. Only while there is no item. */
  awaitItem(wait: Wait<T>, signal?: AbortSignal): void;
  /** What is kept of a put. Throws for bad options. */
  enter(item: T, options: I | undefined): unknown;
  /** True if it is in, false if it was dropped, undefined if it must wait; throws if it is refused. */
  tryPut(entry: unknown): boolean | undefined;
  /** Joins the producers, and brings an entry. Only while there is no room. */
  awaitRoom(wait: Wait<boolean | Reservation<T, I>, unknown>): void;
  /** An item has ripened for which somebody waits. */
  onReady(): void;
  /** So many items have left by another way. */
  onLeft(count: number): void;
}
