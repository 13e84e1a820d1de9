/** Waits for time to pass: for events, wait on what announces them. */
import { Watcher } from "../internal/abort.ts";
import { checkMs, checkWait } from "../internal/check.ts";
import type { Clock, Timer, TimerTask } from "./clock.ts";
import { systemClock } from "./system.ts";

export interface SleepOptions {
  /** Ends the sleep: the promise rejects with `signal.reason`. */
  readonly signal?: AbortSignal | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

/**
 * Resolves `ms` from now, however long that is; with `Infinity`, only the signal ends it. At least 0. By the system
 * clock, two that end within a millisecond of each other may do so in either order.
 */
export function sleep(ms: number, options: SleepOptions = {}): Promise<void> {
  return new Promise((resolve, reject) => {
    const { signal, clock = systemClock } = options;
    checkMs("ms", ms);
    checkWait({ signal });
    const sleeper = new Sleeper(resolve, reject);
    if (ms < Infinity) sleeper.wakeAfter(ms, clock);
    if (signal !== undefined) sleeper.heed(signal);
  });
}

class Sleeper extends Watcher implements TimerTask {
  readonly #resolve: () => void;
  readonly #reject: (reason: unknown) => void;
  #timer: Timer | undefined;

  constructor(resolve: () => void, reject: (reason: unknown) => void) {
    super();
    this.#resolve = resolve;
    this.#reject = reject;
  }

  wakeAfter(ms: number, clock: Clock): void {
    this.#timer = clock.setTimer(ms, this);
  }

  heed(signal: AbortSignal): void {
    try {
      this.watch(signal);
    } catch (error) {
      this.#timer?.cancel(); // the signal is foreign code, and the promise has rejected
      throw error;
    }
  }

  onTimer(): void {
    this.unwatch();
    this.#resolve();
  }

  override onAbort(reason: unknown): void {
    this.#timer?.cancel();
    this.#reject(reason);
  }
}
