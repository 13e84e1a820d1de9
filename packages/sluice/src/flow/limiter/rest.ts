/**
 * Spans in which a limiter starts nothing: until its rate has a start again, or for a turn of the event loop. For calls
 * that wait for nothing follow one another as promise reactions do, and would let no timer fire and no socket be read
 * until the last of them.
 */
import type { Clock, Timer, TimerTask } from "../../clock/clock.ts";

/** How long starts may follow one another without a turn of the event loop, and how often that is looked at. */
const BURST_MS = 8;
const BURST_STARTS = 16;

export class Rest implements TimerTask {
  // I1  it is on only while its timer is set, which then keeps the process alive for who waits
  // I2  else a timer is set at most every BURST_MS: it fires in the next turn of the event loop, if there is one
  isOn = false;
  readonly #clock: Clock;
  readonly #onEnd: () => void;
  #timer: Timer | undefined;
  #starts = 0;
  #burstAt: number;

  constructor(clock: Clock, onEnd: () => void) {
    this.#clock = clock;
    this.#onEnd = onEnd;
    this.#burstAt = clock.now();
  }

  begin(ms: number): void {
    this.#timer?.cancel();
    this.#timer = this.#clock.setTimer(ms, this);
    this.isOn = true;
  }

  /** Before each start: begins, and says so, when a turn of the event loop is due. */
  isDue(): boolean {
    this.#starts += 1;
    if (this.#starts % BURST_STARTS !== 0) return false;
    const now = this.#clock.now();
    if (now - this.#burstAt < BURST_MS) return false;
    if (this.#timer === undefined) {
      this.#timer = this.#clock.setTimer(0, this, { background: true });
      this.#burstAt = now;
    } else this.begin(0);
    return this.isOn;
  }

  /** Nobody waits any more. */
  end(): void {
    if (!this.isOn) return;
    this.isOn = false;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  onTimer(): void {
    const wasOn = this.isOn;
    this.isOn = false;
    this.#timer = undefined;
    if (wasOn) this.#onEnd();
  }
}
