/**
 * One-shot count-down latch: holds its waiters until it has been counted down to zero, then lets everybody through for
 * good. For rounds that repeat use `Barrier`, for what opens and closes use `Gate`. Named after Java's CountDownLatch.
 */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { checkInteger, checkWait } from "../internal/check.ts";
import { type NameOptions, register } from "../internal/names.ts";
import { grantAll, WaitList } from "../internal/wait-list.ts";
import type { WaitOptions } from "../policy.ts";

export interface LatchOptions extends NameOptions {
  /** Runs `timeoutMs` and tells ages. @default systemClock */
  readonly clock?: Clock | undefined;
}

export type LatchStats = Readonly<{
  /** What it started with. */
  count: number;
  /** What is still to be counted down. */
  remaining: number;
  isOpen: boolean;
  waiting: number;
  /** Age of the longest wait that goes on; 0 if nobody waits. */
  oldestWaitMs: number;
  /** Arrivals that came when it was open already: more than were expected, or a latch that is used a second time. */
  late: number;
  /** Waits that came when it was open already, and so waited for nothing. */
  passed: number;
  timedOut: number;
  aborted: number;
}>;

export class Latch {
  // I1  #remaining only falls, and never below 0
  // I2  #remaining > 0, or nobody waits but those who are about to hear of their abort
  readonly count: number;
  readonly name: string | undefined;
  readonly #clock: Clock;
  readonly #waiters: WaitList<void>;
  #remaining: number;
  #late = 0;
  #passed = 0;

  /** Opens when `count` arrivals have been counted: an integer >= 0; with 0 it is open from the start. */
  constructor(count: number, options: LatchOptions = {}) {
    this.count = this.#remaining = checkInteger("count", count, { min: 0 });
    this.#clock = options.clock ?? systemClock;
    this.#waiters = new WaitList<void>({ owner: this });
    this.name = options.name;
    register("latch", options, this);
  }

  get remaining(): number {
    return this.#remaining;
  }

  get isOpen(): boolean {
    return this.#remaining === 0;
  }

  get waiting(): number {
    return this.#waiters.size;
  }

  stats(): LatchStats {
    const { count, remaining, isOpen, waiting } = this;
    const { timedOut, aborted } = this.#waiters;
    const oldestWaitMs = this.#waiters.oldestWaitMs(this.#clock);
    const [late, passed] = [this.#late, this.#passed];
    return { count, remaining, isOpen, waiting, oldestWaitMs, late, passed, timedOut, aborted };
  }

  /** `n` arrivals at once: an integer >= 1. Those that nobody waits for any more change nothing, but are counted as late. */
  countDown(n = 1): void {
    checkInteger("n", n, { min: 1 });
    const counted = Math.min(n, this.#remaining);
    this.#late += n - counted;
    if (counted === 0) return;
    this.#remaining -= counted;
    if (this.#remaining === 0) grantAll(this.#waiters);
  }

  /** Waits for no more arrivals. Those that still come are late. */
  open(): void {
    if (this.isOpen) return;
    this.#remaining = 0;
    grantAll(this.#waiters);
  }

  /** Until it is open. All who wait go on in the order they came. */
  wait(options: WaitOptions = {}): Promise<void> {
    try {
      checkWait(options);
      if (!this.isOpen) {
        this.#waiters.refuseHaste(options);
        return this.#waiters.wait(options, this.#clock);
      }
      this.#passed += 1;
      return Promise.resolve();
    } catch (error) {
      return Promise.reject(error);
    }
  }
}
