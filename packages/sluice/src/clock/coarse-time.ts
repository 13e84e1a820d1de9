/**
 * The time for those who need it often and not exactly: reading a clock takes as long as all else that a wait does. In a
 * burst of readings one serves for many.
 */
import type { Clock, TimerTask } from "./clock.ts";

/** Readings that follow each other within `WITHIN_MS` so many times are a burst. */
const STREAK = 16;
const WITHIN_MS = 1 / 16;
/** How long a reading may serve, turns of the event loop that take longer aside, and for how many. */
const SERVES_MS = 1;
const SERVES = 64;

export class CoarseTime implements TimerTask {
  // I1  #left > 0 only while a timer is set that ends it
  readonly #clock: Clock;
  #reading = -Infinity;
  #left = 0;
  #streak = 0;
  #endsAt = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    if (this.#left > 0) {
      this.#left -= 1;
      return this.#reading;
    }
    const now = this.#clock.now();
    this.#streak = now - this.#reading < WITHIN_MS ? this.#streak + 1 : 0;
    this.#reading = now;
    if (this.#streak >= STREAK) this.#serve(now);
    return now;
  }

  onTimer(): void {
    this.#left = 0;
  }

  #serve(now: number): void {
    if (now >= this.#endsAt) {
      this.#clock.setTimer(SERVES_MS, this, { background: true }); // may throw, as any clock's may
      this.#endsAt = now + SERVES_MS;
    }
    this.#left = SERVES;
  }
}
