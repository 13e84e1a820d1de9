/**
 * Client-side throttling: turns calls away by chance, in the share in which the dependency has lately refused them, so
 * that what it can't take doesn't cost it the work of refusing. For many clients of one dependency, each of which sees
 * only a part of its load; for a dependency that is down, use `CircuitBreaker`, for how many calls run at once,
 * `AdaptiveLimiter`.
 *
 * The share is max(0, (asked - multiplier × taken) / (asked + 1)) over the last `windowMs`, where asked includes what was
 * turned away here (https://sre.google/sre-book/handling-overload, "Client-Side Throttling").
 */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { OverloadedError } from "../errors.ts";
import { checkFunction, checkMs, checkNumber, checkShare, checkWait } from "../internal/check.ts";
import { type NameOptions, register } from "../internal/names.ts";
import { notice } from "../internal/probe.ts";
import { type Random, systemRandom } from "../internal/random.ts";
import { setStage } from "../internal/stage.ts";
import { whenSettled } from "../internal/when-settled.ts";
import type { Policy, Task, WaitOptions } from "../policy.ts";
import type { CircuitOutcome } from "./classify.ts";
import { classifyLoad, type LoadVerdict } from "./load-verdict.ts";

export interface AdaptiveThrottleOptions extends NameOptions {
  /** How many times what is taken may be asked for before anything is turned away. At least 1. @default 2 */
  readonly multiplier?: number | undefined;
  /** How far back it looks. At least 1, and finite. @default 120_000 */
  readonly windowMs?: number | undefined;
  /** The largest share that is turned away, so that it is noticed when the dependency is back. From 0 to 1. @default 0.9 */
  readonly maxShare?: number | undefined;
  /** What an outcome says: whatever is no "overload" was taken. If it throws, the call rejects with what it threw. @default classifyLoad */
  readonly classify?: ((outcome: CircuitOutcome) => LoadVerdict) | undefined;
  /** Draws who is turned away. @default Math.random */
  readonly random?: Random | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

export type AdaptiveThrottleStats = Readonly<{
  /** Of the last `windowMs`: calls that ended or were turned away, and those that the dependency took. */
  asked: number;
  taken: number;
  /** The share of calls that is turned away now. */
  share: number;
  /** Calls that passed and have not ended, and calls turned away so far. */
  running: number;
  rejected: number;
}>;

/** The window moves on by so many steps. */
const SLOTS = 12;

export class AdaptiveThrottle implements Policy {
  // I1  #asked and #taken are the sums of the slots, none of which is older than the window
  readonly name: string | undefined;
  readonly #multiplier: number;
  readonly #slotMs: number;
  readonly #maxShare: number;
  readonly #classify: (outcome: CircuitOutcome) => LoadVerdict;
  readonly #random: Random;
  readonly #clock: Clock;
  readonly #slots = Array.from({ length: SLOTS }, () => ({ asked: 0, taken: 0 }));
  #step = -Infinity;
  #asked = 0;
  #taken = 0;
  #running = 0;
  #rejected = 0;

  static {
    setStage(AdaptiveThrottle, (throttle) => ({
      enter: () => throttle.#admit(),
      leave: (_, isFulfilled, result) => throttle.#leave(isFulfilled, result),
    }));
  }

  constructor(options: AdaptiveThrottleOptions = {}) {
    const { multiplier = 2, windowMs = 120_000, maxShare = 0.9 } = options;
    this.#multiplier = checkNumber("multiplier", multiplier, { min: 1 });
    this.#slotMs = checkMs("windowMs", windowMs, { min: 1 }) / SLOTS;
    this.#maxShare = checkShare("maxShare", maxShare);
    this.#classify = checkFunction("classify", options.classify ?? classifyLoad);
    this.#random = checkFunction("random", options.random ?? systemRandom);
    this.#clock = options.clock ?? systemClock;
    this.name = options.name;
    register("adaptive-throttle", options, this);
  }

  /** The share of calls that is turned away now. */
  get share(): number {
    this.#forget();
    const share = (this.#asked - this.#multiplier * this.#taken) / (this.#asked + 1);
    return Math.min(this.#maxShare, Math.max(0, share));
  }

  stats(): AdaptiveThrottleStats {
    const { share } = this;
    return { asked: this.#asked, taken: this.#taken, share, running: this.#running, rejected: this.#rejected };
  }

  /** Calls `fn` at once, or rejects with `OverloadedError` at once. */
  run<T>(fn: Task<T>, options: WaitOptions = {}): Promise<T> {
    try {
      checkWait(options);
      this.#admit();
      const succeed = (value: T): T => {
        this.#leave(true, value);
        return value;
      };
      const fail = (reason: unknown): never => {
        this.#leave(false, reason);
        throw reason;
      };
      try {
        return whenSettled(fn({ signal: options.signal }), succeed, fail);
      } catch (error) {
        return fail(error);
      }
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #admit(): true {
    const { share } = this;
    if (share > 0 && this.#random() < share) {
      this.#rejected += 1;
      this.#count(false);
      const error = new OverloadedError(this.#slotMs);
      notice?.("rejected", this, error);
      throw error;
    }
    this.#running += 1;
    return true;
  }

  #leave(isFulfilled: boolean, result: unknown): undefined {
    this.#running -= 1;
    const outcome: CircuitOutcome = isFulfilled
      ? { status: "fulfilled", value: result }
      : { status: "rejected", reason: result };
    const isTaken = this.#classify(outcome) !== "overload";
    this.#forget();
    this.#count(isTaken);
  }

  /** In the slot of now, which `#forget` has made so. */
  #count(isTaken: boolean): void {
    const slot = this.#slots[this.#step % SLOTS];
    if (slot === undefined) return;
    slot.asked += 1;
    this.#asked += 1;
    if (!isTaken) return;
    slot.taken += 1;
    this.#taken += 1;
  }

  #forget(): void {
    const step = Math.max(0, Math.floor(this.#clock.now() / this.#slotMs));
    for (let each = Math.max(this.#step, step - SLOTS) + 1; each <= step; each += 1) {
      const slot = this.#slots[each % SLOTS];
      if (slot === undefined) continue;
      this.#asked -= slot.asked;
      this.#taken -= slot.taken;
      slot.asked = slot.taken = 0;
    }
    this.#step = Math.max(this.#step, step);
  }
}
