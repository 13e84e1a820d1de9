/**
 * Bounds the share of retries among all calls to a service: retries that help when one call in a hundred fails are what
 * keeps a service down when all do. To be shared by whatever calls the service again, `retry` and `hedge` alike, at
 * whatever place. As in Finagle (https://finagle.github.io/blog/2016/02/08/retry-budgets/), with a reserve for who calls
 * too rarely to have earned a retry; the greater of share and reserve counts, not their sum.
 */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { checkMs, checkNumber } from "../internal/check.ts";
import { coarseNow } from "../internal/coarse-now.ts";
import { type NameOptions, register } from "../internal/names.ts";

export interface RetryBudgetOptions extends NameOptions {
  /** Retries that each call allows: 0.1 for one in ten. At least 0. @default 0.1 */
  readonly ratio?: number | undefined;
  /** Retries per second that are allowed however few calls there are. At least 0. @default 1 */
  readonly minPerSecond?: number | undefined;
  /** What was longer ago than this is forgotten, by tenths of it. At least 1. @default 10_000 */
  readonly windowMs?: number | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

export type RetryBudgetStats = Readonly<{
  /** Of the window. */
  calls: number;
  retries: number;
  /** Retries that would be allowed now. */
  left: number;
  /** Retries that were refused, ever. */
  refused: number;
}>;

const SLOTS = 10;

export class RetryBudget {
  // I1  #calls and #retries are the sums of the slots, and these hold what was counted in the last #slotMs * SLOTS
  // I2  whenever a retry is allowed, #retries <= max(#reserve, #ratio * #calls), for the #calls of that instant
  readonly name: string | undefined;
  readonly #ratio: number;
  readonly #reserve: number;
  readonly #slotMs: number;
  readonly #clock: Clock;
  readonly #callsBySlot: number[] = Array.from({ length: SLOTS }, () => 0);
  readonly #retriesBySlot: number[] = Array.from({ length: SLOTS }, () => 0);
  readonly #startedAt: number;
  /** That of the latest call or retry, counted from the start. */
  #slot = 0;
  #calls = 0;
  #retries = 0;
  #refused = 0;

  constructor(options: RetryBudgetOptions = {}) {
    const { ratio = 0.1, minPerSecond = 1, windowMs = 10_000 } = options;
    this.#ratio = checkNumber("ratio", ratio, { min: 0 });
    this.#slotMs = checkMs("windowMs", windowMs, { min: 1 }) / SLOTS;
    this.#reserve = (checkNumber("minPerSecond", minPerSecond, { min: 0 }) * windowMs) / 1_000;
    this.#clock = options.clock ?? systemClock;
    this.#startedAt = this.#clock.now();
    this.name = options.name;
    register("retry-budget", options, this);
  }

  stats(): RetryBudgetStats {
    this.#forget();
    return { calls: this.#calls, retries: this.#retries, left: this.#left, refused: this.#refused };
  }

  /** Tells of a call that is no retry, whatever becomes of it. */
  onCall(): void {
    const at = this.#forget();
    this.#callsBySlot[at] = (this.#callsBySlot[at] ?? 0) + 1;
    this.#calls += 1;
  }

  /** Whether one more retry is allowed; it has been counted then. */
  trySpend(): boolean {
    const at = this.#forget();
    if (this.#left < 1) {
      this.#refused += 1;
      return false;
    }
    this.#retriesBySlot[at] = (this.#retriesBySlot[at] ?? 0) + 1;
    this.#retries += 1;
    return true;
  }

  /** A tenth of a hundred is to be ten, whatever floating point makes of it. */
  get #left(): number {
    const allowed = Math.max(this.#reserve, this.#ratio * this.#calls);
    return Math.max(0, Math.floor(allowed - this.#retries + 1e-9));
  }

  #slotOfNow(): number {
    return Math.floor((coarseNow(this.#clock) - this.#startedAt) / this.#slotMs);
  }

  /** Empties the slots that have become too old. Returns where to count what happens now. */
  #forget(): number {
    const now = Math.max(this.#slot, this.#slotOfNow()); // a coarse clock may be behind a moment ago
    for (let slot = Math.max(this.#slot + 1, now - SLOTS + 1); slot <= now; slot += 1) {
      const at = slot % SLOTS;
      this.#calls -= this.#callsBySlot[at] ?? 0;
      this.#retries -= this.#retriesBySlot[at] ?? 0;
      this.#callsBySlot[at] = this.#retriesBySlot[at] = 0;
    }
    this.#slot = now;
    return now % SLOTS;
  }
}
