/**
 * Circuit breaker: after so many failures in a row it turns calls away without trying, until a trial succeeds.
 * It spares a dependency that is down, and callers the wait for it. A hang is seen only if the call inside has a
 * `timeout`; a retry belongs outside. One breaker for each provider: `KeyedCircuitBreaker` keeps them.
 *
 * Closed: calls pass, and `failures` failed ones in a row open it. Open: calls are turned away, which does not extend
 * the cooldown. Half-open, from the end of the cooldown on: `maxTrials` calls at a time pass, the others are turned
 * away; the first success closes it, the first failure opens it for a new cooldown. No timer: the clock is asked at
 * the next call. A result that arrives when the state it was called in has passed moves nothing.
 */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { CircuitOpenError } from "../errors.ts";
import { checkInteger, checkMs, checkWait } from "../internal/check.ts";
import { type NameOptions, register } from "../internal/names.ts";
import { whenSettled } from "../internal/when-settled.ts";
import type { Policy, Task, WaitOptions } from "../policy.ts";
import { classifyOutcome, type CircuitOutcome, type CircuitVerdict } from "./classify.ts";

export type CircuitState = "closed" | "open" | "half-open";

export interface CircuitChange {
  readonly from: CircuitState;
  readonly to: CircuitState;
}

export interface CircuitBreakerOptions extends NameOptions {
  /** Failures in a row that open it. An integer >= 1. @default 5 */
  readonly failures?: number | undefined;
  /** How long it stays open. At least 1, and finite. @default 30_000 */
  readonly cooldownMs?: number | undefined;
  /** Calls under way at a time while half-open. An integer >= 1. @default 1 */
  readonly maxTrials?: number | undefined;
  /**
   * A trial that takes longer counts no more against `maxTrials`, so that one that hangs can't keep it half-open for
   * ever; its outcome counts when it comes. At least 1, and finite. @default cooldownMs
   */
  readonly maxTrialMs?: number | undefined;
  /**
   * What an outcome says about the dependency. An ignored one moves nothing, and gives its place back if it was a
   * trial. If this throws, the call rejects with what it threw and the outcome is ignored. A call that rejects after
   * its caller's abort is always ignored. @default classifyOutcome
   */
  readonly classify?: ((outcome: CircuitOutcome) => CircuitVerdict) | undefined;
  /**
   * Called after each change; "half-open" is told when its first trial starts. What this throws is an unhandled
   * rejection, and changes nothing else.
   */
  readonly onStateChange?: ((change: CircuitChange) => void) | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

export type CircuitBreakerStats = Readonly<{
  state: CircuitState;
  /** In a row, up to now. */
  failures: number;
  /** Calls that passed and have not ended. */
  running: number;
  /** Of these, the trials that count against `maxTrials`. */
  trials: number;
  /** So far: calls turned away, and times it opened. */
  rejected: number;
  opened: number;
}>;

export class CircuitBreaker implements Policy {
  // I1  #openUntil is undefined exactly while closed; the clock tells open from half-open
  // I2  only a call of the present #generation moves anything; opening and closing begin a new one
  // I3  #trials are calls of this generation under way, oldest first, at most #maxTrials
  readonly name: string | undefined;
  readonly #maxFailures: number;
  readonly #cooldownMs: number;
  readonly #maxTrials: number;
  readonly #maxTrialMs: number;
  readonly #classify: (outcome: CircuitOutcome) => CircuitVerdict;
  readonly #onStateChange: ((change: CircuitChange) => void) | undefined;
  readonly #clock: Clock;
  readonly #trials = new Set<Call>();
  #openUntil: number | undefined;
  #generation = 0;
  /** Whether "half-open" has been told in this generation. */
  #isTrying = false;
  #failures = 0;
  #running = 0;
  #rejected = 0;
  #opened = 0;

  constructor(options: CircuitBreakerOptions = {}) {
    const { failures = 5, cooldownMs = 30_000, maxTrials = 1, maxTrialMs = cooldownMs } = options;
    this.#maxFailures = checkInteger("failures", failures, { min: 1 });
    this.#cooldownMs = checkMs("cooldownMs", cooldownMs, { min: 1 });
    this.#maxTrials = checkInteger("maxTrials", maxTrials, { min: 1 });
    this.#maxTrialMs = checkMs("maxTrialMs", maxTrialMs, { min: 1 });
    this.#classify = options.classify ?? classifyOutcome;
    this.#onStateChange = options.onStateChange;
    this.#clock = options.clock ?? systemClock;
    this.name = options.name;
    register("circuit-breaker", options, this);
  }

  get state(): CircuitState {
    if (this.#openUntil === undefined) return "closed";
    return this.#clock.now() < this.#openUntil ? "open" : "half-open";
  }

  /** Calls that passed and have not ended. */
  get running(): number {
    return this.#running;
  }

  stats(): CircuitBreakerStats {
    return {
      state: this.state,
      failures: this.#failures,
      running: this.running,
      trials: this.#trials.size,
      rejected: this.#rejected,
      opened: this.#opened,
    };
  }

  /** Calls `fn` at once, or rejects with `CircuitOpenError` at once. */
  run<T>(fn: Task<T>, options: WaitOptions = {}): Promise<T> {
    // Not `async`: one frame more would be most of what a closed breaker costs.
    try {
      checkWait(options);
      const { signal } = options;
      const call = this.#admit();
      const succeed = (value: T): T => {
        this.#end(call, { status: "fulfilled", value }, false);
        return value;
      };
      const fail = (reason: unknown): never => {
        this.#end(call, { status: "rejected", reason }, signal?.aborted === true);
        throw reason;
      };
      try {
        return whenSettled(fn({ signal }), succeed, fail);
      } catch (error) {
        return fail(error);
      }
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #admit(): Call {
    const call = { generation: this.#generation, startedAt: 0 };
    if (this.#openUntil !== undefined) {
      call.startedAt = this.#clock.now();
      this.#admitTrial(call, this.#openUntil);
    }
    this.#running += 1;
    return call;
  }

  #admitTrial(call: Call, openUntil: number): void {
    const now = call.startedAt;
    for (const trial of this.#trials) {
      if (now - trial.startedAt < this.#maxTrialMs) break;
      this.#trials.delete(trial);
    }
    if (now < openUntil || this.#trials.size >= this.#maxTrials) {
      this.#rejected += 1;
      throw new CircuitOpenError(Math.max(0, openUntil - now));
    }
    this.#trials.add(call); // before anything is awaited or told, so that no other call slips in
    if (this.#isTrying) return;
    this.#isTrying = true;
    this.#tell("open", "half-open");
  }

  #end(call: Call, outcome: CircuitOutcome, isAborted: boolean): void {
    let verdict: CircuitVerdict = "ignore";
    try {
      if (!isAborted) verdict = this.#classify(outcome);
    } finally {
      this.#settle(call, verdict);
    }
  }

  #settle(call: Call, verdict: CircuitVerdict): void {
    this.#running -= 1;
    this.#trials.delete(call);
    if (call.generation !== this.#generation) return;
    if (verdict === "failure") {
      this.#failures += 1; // to those that opened it, if it was a trial's
      if (this.#failures >= this.#maxFailures) this.#open();
    } else if (verdict === "success") {
      this.#failures = 0;
      if (this.#openUntil !== undefined) this.#close();
    }
  }

  #open(): void {
    const from = this.#openUntil === undefined ? "closed" : "half-open";
    this.#openUntil = this.#clock.now() + this.#cooldownMs;
    this.#opened += 1;
    this.#turnOver();
    this.#tell(from, "open");
  }

  #close(): void {
    this.#openUntil = undefined;
    this.#turnOver();
    this.#tell("half-open", "closed");
  }

  #turnOver(): void {
    this.#generation += 1;
    this.#trials.clear();
    this.#isTrying = false;
  }

  #tell(from: CircuitState, to: CircuitState): void {
    try {
      this.#onStateChange?.({ from, to });
    } catch (error) {
      void Promise.reject(error); // seen as unhandled; the call that brought the change has done nothing wrong
    }
  }
}

interface Call {
  readonly generation: number;
  /** Of a trial. */
  startedAt: number;
}
