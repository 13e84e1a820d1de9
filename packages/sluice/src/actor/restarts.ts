/** Decides what becomes of an actor that has failed: what it was told, within what it is allowed. */
import type { Clock } from "../clock/clock.ts";
import { checkFunction, checkInteger, checkMs, checkOneOf } from "../internal/check.ts";
import { type Random, systemRandom } from "../internal/random.ts";
import { type Backoff, exponentialBackoff, fullJitter } from "../resilience/backoff.ts";
import type { ActorOptions, Decision, Failure } from "./actor-options.ts";

const DECISIONS = ["resume", "restart", "stop", "escalate"] as const;

export interface Verdict {
  readonly decision: Decision;
  readonly error: unknown;
  /** Before a restart. */
  readonly delayMs: number;
}

export class Restarts<M> {
  // I1  #at holds the instants of the restarts of the last #windowMs, the oldest first, and no more than #max + 1
  /** Whether a function of the user's hears of failures. */
  readonly isHeard: boolean;
  readonly #onFailure: Decision | ((error: unknown, failure: Failure<M>) => Decision);
  readonly #max: number;
  readonly #windowMs: number;
  readonly #backoff: Backoff;
  readonly #random: Random;
  readonly #clock: Clock;
  #at: number[] = [];
  #inARow = 0;
  #restMs = 0;

  constructor(options: ActorOptions<M>, clock: Clock) {
    const { onFailure = "restart", maxRestarts = Infinity, restartWindowMs = 60_000 } = options;
    this.isHeard = typeof onFailure === "function";
    this.#onFailure = typeof onFailure === "function" ? onFailure : checkOneOf("onFailure", onFailure, DECISIONS);
    this.#max = checkInteger("maxRestarts", maxRestarts, { min: 0, infinity: true });
    this.#windowMs = checkMs("restartWindowMs", restartWindowMs);
    this.#backoff = options.backoff ?? fullJitter(exponentialBackoff());
    checkFunction("backoff", this.#backoff);
    this.#random = checkFunction("random", options.random ?? systemRandom);
    this.#clock = clock;
  }

  succeeded(): void {
    this.#inARow = this.#restMs = 0;
  }

  failed(error: unknown, message: M | undefined): Verdict {
    this.#inARow += 1;
    try {
      const decision =
        typeof this.#onFailure === "function"
          ? checkOneOf("onFailure", this.#onFailure(error, { message, inARow: this.#inARow }), DECISIONS)
          : this.#onFailure;
      if (decision !== "restart") return { decision, error, delayMs: 0 };
      if (!this.#mayRestart()) return { decision: "escalate", error, delayMs: 0 };
      return { decision, error, delayMs: this.#delayMs(error) };
    } catch (thrown) {
      return { decision: "escalate", error: thrown, delayMs: 0 };
    }
  }

  #mayRestart(): boolean {
    if (this.#max === Infinity) return true;
    const now = this.#clock.now();
    this.#at = this.#at.filter((at) => now - at < this.#windowMs);
    this.#at.push(now);
    return this.#at.length <= this.#max;
  }

  #delayMs(reason: unknown): number {
    if (this.#inARow === 1) return 0;
    const context = { previousMs: this.#restMs, reason, random: this.#random };
    return (this.#restMs = checkMs("backoff's result", this.#backoff(this.#inARow - 1, context)));
  }
}
