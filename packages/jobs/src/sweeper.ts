/** Takes back lapsed leases of one queue, and removes what has been kept long enough: regularly, and when asked. */
import type { Clock, Timer, TimerTask } from "sluice";
import type { Store, Swept } from "./store.ts";

const PRUNE_EVERY_MS = 600_000;

export interface SweeperOptions {
  readonly store: Store;
  readonly queue: string;
  readonly clock: Clock;
  /** It sweeps at half of it. */
  readonly leaseMs: number;
  readonly maxCrashes: number;
  /** Keeps the worker's own leases alive. Never rejects. */
  readonly beat: () => Promise<void>;
  readonly onSwept: (swept: Swept) => void;
  readonly onError: (error: unknown, during: "sweep" | "prune") => void;
}

export class Sweeper implements TimerTask {
  // I1  one sweep is under way at a time
  // I2  before a sweep, whoever lives on this event loop has had the time to keep its leases alive
  readonly #options: SweeperOptions;
  #timer: Timer | undefined;
  #turn: Timer | undefined;
  #sweeping: Promise<void> | undefined;
  #pruneAt = -Infinity;
  #isClosed = false;

  constructor(options: SweeperOptions) {
    this.#options = options;
  }

  /** From now on its timer keeps the process alive. */
  start(): void {
    this.onTimer();
  }

  onTimer(): void {
    const { clock, leaseMs } = this.#options;
    this.#timer = clock.setTimer(leaseMs / 2, this);
    void this.sweep();
    void this.#prune();
  }

  /** Whoever asks during a sweep gets that one. Never rejects. */
  sweep(): Promise<void> {
    return (this.#sweeping ??= this.#sweep().finally(() => {
      this.#sweeping = undefined;
    }));
  }

  /** A sweep that hasn't begun never does: who has closed this may close the store. */
  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#turn?.cancel();
  }

  async #sweep(): Promise<void> {
    const { store, queue, maxCrashes, beat, onSwept, onError } = this.#options;
    // Its own leases first: after a jump of the clock or a blocked event loop they have lapsed, though it is alive.
    await beat();
    if (this.#isClosed) return;
    await this.#othersTurn();
    try {
      onSwept(await store.sweep({ queue, maxCrashes }));
    } catch (error) {
      onError(error, "sweep");
    }
  }

  /**
   * After a blocked event loop the heartbeats of other workers are overdue, and so is this sweep: what is due already
   * fires before a timer that is set now.
   */
  #othersTurn(): Promise<void> {
    return new Promise((resolve) => {
      this.#turn = this.#options.clock.setTimer(0, { onTimer: resolve }, { background: true });
    });
  }

  /** What has ended is kept no longer than the store was told, and somebody has to see to it. */
  async #prune(): Promise<void> {
    const { store, clock, onError } = this.#options;
    const now = clock.now();
    if (now < this.#pruneAt) return;
    this.#pruneAt = now + PRUNE_EVERY_MS;
    try {
      await store.prune();
    } catch (error) {
      onError(error, "prune");
    }
  }
}
