/** Tells when microtasks alone have kept the event loop from turning: a store in memory answers without a turn. */
import type { Clock, Timer, TimerTask } from "sluice";

const MAX_STRETCH_MS = 20;

export class TurnGuard implements TimerTask {
  readonly #clock: Clock;
  #timer: Timer | undefined;
  #since = 0;
  #resume: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** To be asked often: the first time since the last turn starts the stretch that is measured. */
  get isOverdue(): boolean {
    const now = this.#clock.now();
    if (this.#timer !== undefined) return now - this.#since > MAX_STRETCH_MS;
    this.#since = now;
    this.#timer = this.#clock.setTimer(0, this, { background: true });
    return false;
  }

  /** Resolves once the event loop has turned. To be called when it is overdue, by one caller. */
  turned(): Promise<void> {
    return new Promise((resolve) => {
      this.#resume = resolve;
    });
  }

  close(): void {
    this.#timer?.cancel();
    this.onTimer();
  }

  onTimer(): void {
    this.#timer = undefined;
    this.#resume?.();
    this.#resume = undefined;
  }
}
