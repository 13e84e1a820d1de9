/**
 * Keeps holds in a delay queue in memory, whose first is taken the moment it is over. Prompt, and free until then; but
 * when the process dies the queue is gone, and what it held is held for good, unless a sweep stands behind it.
 */
import { DelayQueue, QueueFullError } from "sluice";
import { type Expiry, type ExpiryOptions, tell, TOLD_AT_ONCE } from "./seat-holds.ts";
import type { Hold, Seats } from "./seats.ts";

export interface QueueExpiryOptions extends ExpiryOptions {
  /** Holds in memory at a time, those that were extended or bought included until they would have been over. */
  readonly capacity: number;
}

const STOPPED = new Error("stopped");

export class QueueExpiry implements Expiry {
  readonly #seats: Seats;
  readonly #options: QueueExpiryOptions;
  readonly #queue: DelayQueue<Hold>;
  readonly #stopping = new AbortController();
  #consuming: Promise<void> | undefined;

  constructor(seats: Seats, options: QueueExpiryOptions) {
    this.#seats = seats;
    this.#options = options;
    this.#queue = new DelayQueue(options.capacity, { clock: options.clock });
  }

  plan(hold: Hold): void {
    if (!this.#queue.offer(hold, { dueAt: hold.untilAt })) throw new QueueFullError(this.#options.capacity);
  }

  start(): void {
    const { signal } = this.#stopping;
    this.#consuming = this.#queue.consume((hold) => this.#end(hold), { workers: TOLD_AT_ONCE, signal });
  }

  /** What isn't due stays held: closing the queue instead would wait for all of it. */
  async stop(): Promise<void> {
    this.#stopping.abort(STOPPED);
    await this.#consuming?.catch((error: unknown) => {
      if (error !== STOPPED) throw error;
    });
  }

  async #end(hold: Hold): Promise<void> {
    if (this.#seats.free(hold)) await tell(hold.seat, this.#options);
  }
}
