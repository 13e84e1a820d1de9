import type { Clock, Timer, TimerTask } from "../clock/clock.ts";

/** Tells when nothing has been done for so long, with one timer for as many times of idleness as fit into it. */
export class IdleWatch implements TimerTask {
  readonly #idleMs: number;
  readonly #onIdle: () => void;
  readonly #clock: Clock;
  #since = 0;
  #timer: Timer | undefined;

  /** `onIdle` is also called though it is busy again. */
  constructor(idleMs: number, onIdle: () => void, clock: Clock) {
    this.#idleMs = idleMs;
    this.#onIdle = onIdle;
    this.#clock = clock;
  }

  /** It has nothing to do from now on. */
  begin(): void {
    this.#since = this.#clock.now();
    this.#timer ??= this.#set(this.#idleMs);
  }

  stop(): void {
    this.#timer?.cancel();
  }

  onTimer(): void {
    const leftMs = this.#since + this.#idleMs - this.#clock.now();
    this.#timer = leftMs > 0 ? this.#set(leftMs) : undefined;
    if (leftMs <= 0) this.#onIdle();
  }

  #set(ms: number): Timer {
    return this.#clock.setTimer(ms, this, { background: true });
  }
}
