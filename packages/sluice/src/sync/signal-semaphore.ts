/**
 * Counting semaphore that nobody owns: whoever has something to tell releases, whoever waits for it acquires, and neither
 * gives anything back. With a limit of 1 it is a flag that wakes one waiter and stays up until somebody has come for it.
 * It carries news, it protects nothing: for a bound on work use `Semaphore`, whose permits know to whom they belong; for
 * news with content use `Queue`, for what happens once and concerns all `Latch`.
 */
import { checkInteger } from "../internal/check.ts";
import { register } from "../internal/names.ts";
import type { WeightedWaitOptions } from "../policy.ts";
import { type LineOptions, type LineStats, PermitPool } from "./permit-pool.ts";

export interface SignalSemaphoreOptions extends LineOptions {
  /** How many can be had at the start: an integer from 0 to the limit. @default 0 */
  readonly initial?: number | undefined;
}

export type SignalSemaphoreStats = LineStats &
  Readonly<{
    limit: number;
    available: number;
    /** Releases for which there was no room: the signal was up already. */
    surplus: number;
  }>;

export class SignalSemaphore {
  readonly limit: number;
  readonly name: string | undefined;
  readonly #pool: SignalPool;
  #surplus = 0;

  /** At most `limit` releases are remembered until somebody comes for them: an integer >= 1. */
  constructor(limit: number, options: SignalSemaphoreOptions = {}) {
    this.limit = checkInteger("limit", limit, { min: 1 });
    const initial = checkInteger("initial", options.initial ?? 0, { min: 0 });
    if (initial > limit) throw new RangeError(`initial must be at most the limit of ${limit}, got ${initial}`);
    this.#pool = new SignalPool("semaphore", this, limit, options, initial);
    this.name = options.name;
    register("signal-semaphore", options, this);
  }

  get available(): number {
    return this.#pool.free;
  }

  get waiting(): number {
    return this.#pool.waiting;
  }

  get closed(): boolean {
    return this.#pool.closed;
  }

  stats(): SignalSemaphoreStats {
    return { limit: this.limit, available: this.available, surplus: this.#surplus, ...this.#pool.stats() };
  }

  /** As soon as somebody has released, or `weight` times. An abort or a timeout uses nothing up. */
  acquire(options?: WeightedWaitOptions): Promise<void> {
    return this.#pool.acquire(options);
  }

  /** Whether there was one, or `weight` of them: if so they are used up. */
  tryAcquire(options?: Pick<WeightedWaitOptions, "weight">): boolean {
    return this.#pool.tryTake(options?.weight);
  }

  /**
   * Anybody may, any time. What goes beyond the limit when those who wait have theirs is dropped, and the answer false.
   * @param count an integer >= 1
   */
  release(count = 1): boolean {
    checkInteger("count", count, { min: 1 });
    const surplus = this.#pool.giveBack(count);
    this.#surplus += surplus;
    return surplus === 0;
  }

  /** Waiters and newcomers get `ClosedError`. */
  close(): void {
    this.#pool.close();
  }
}

class SignalPool extends PermitPool<void> {
  protected override issue(): void {}
}
