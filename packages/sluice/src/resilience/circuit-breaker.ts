/**
 * Circuit breaker: after too many failures it turns calls away without trying, until a trial succeeds. It spares a
 * dependency that is down, and callers the wait for it. A hang is seen only if the call inside has a `timeout`; a retry
 * belongs outside. One breaker for each provider: `KeyedCircuitBreaker` keeps them.
 *
 * Closed: calls pass, and what `trip` remembers of them may open it. Open: calls are turned away, which does not extend
 * the cooldown. Half-open, from the end of the cooldown on: `maxTrials` calls at a time pass, the others are turned
 * away; `successes` of them close it, the first failure opens it for a new cooldown. No timer: the clock is asked at
 * the next call. A result that arrives when the state it was called in has passed moves nothing.
 */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { CircuitOpenError } from "../errors.ts";
import { checkFunction, checkInteger, checkMs, checkWait } from "../internal/check.ts";
import { type NameOptions, register } from "../internal/names.ts";
import { notice } from "../internal/probe.ts";
import { setStage } from "../internal/stage.ts";
import { tell } from "../internal/tell.ts";
import { whenSettled } from "../internal/when-settled.ts";
import type { Policy, Task, WaitOptions } from "../policy.ts";
import { consecutive, type CircuitTrip, type CircuitTripFactory } from "./circuit-trip.ts";
import { classifyOutcome, type CircuitOutcome, type CircuitVerdict } from "./classify.ts";

export type CircuitState = "closed" | "open" | "half-open";

/**
 * `normal` · `isolated`: every call is turned away · `disabled`: every call passes, and none counts · `metrics-only`: as
 * normal, but who would be turned away passes, and counts for nothing but `rejected`.
 */
export type CircuitMode = "normal" | "isolated" | "disabled" | "metrics-only";

export interface CircuitChange {
  readonly from: CircuitState;
  readonly to: CircuitState;
}

/** What a cooldown is worked out from. */
export interface CircuitOpening {
  /** Which it is since the breaker was last closed: 1 for the first. */
  readonly openings: number;
  /** What opened it; undefined if a trial took too long. */
  readonly outcome: CircuitOutcome | undefined;
}

export interface CircuitBreakerOptions extends NameOptions {
  /** Failures in a row that open it. An integer >= 1. Has no say if there is a `trip`. @default 5 */
  readonly failures?: number | undefined;
  /** What opens it: `countWindow()`, `timeWindow()`, or a rule of one's own. @default consecutive(failures) */
  readonly trip?: CircuitTripFactory | undefined;
  /** How long it stays open. At least 1, and finite. @default 30_000 */
  readonly cooldownMs?: number | undefined;
  /** Says so instead each time it opens, such as `growingCooldown()`. What it throws is thrown by the call. */
  readonly cooldown?: ((opening: CircuitOpening) => number) | undefined;
  /** Calls under way at a time while half-open. An integer >= 1. @default 1 */
  readonly maxTrials?: number | undefined;
  /** Trials that must succeed before it closes. An integer >= 1. @default 1 */
  readonly successes?: number | undefined;
  /**
   * A trial that takes longer counts no more against `maxTrials`, so that one that hangs can't keep others out for ever;
   * its outcome counts when it comes. At least 1, and finite. @default cooldownMs
   */
  readonly maxTrialMs?: number | undefined;
  /** If it has neither closed nor opened so long after the first trial, the next call opens it. At least 1. @default Infinity */
  readonly maxHalfOpenMs?: number | undefined;
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
  /** Of the calls that `trip` remembers. */
  failures: number;
  /** Calls that passed and have not ended. */
  running: number;
  /** Of these, the trials that count against `maxTrials`. */
  trials: number;
  /** So far: calls turned away, and times it opened. */
  rejected: number;
  opened: number;
  /** Times it opened since it was last closed. */
  openings: number;
}>;

export class CircuitBreaker implements Policy {
  // I1  #openUntil is undefined exactly while closed; the clock tells open from half-open
  // I2  only a call of the present generation moves anything; each change of state begins a new one
  // I3  #trials are this generation's trials under way, oldest first, at most #maxTrials; a generation is known by its set
  readonly name: string | undefined;
  /** Whether it does its work: to be set by hand, and by `isolate`. It leaves the state as it is. */
  mode: CircuitMode = "normal";
  readonly #makeTrip: CircuitTripFactory;
  readonly #cooldown: (opening: CircuitOpening) => number;
  readonly #maxTrials: number;
  readonly #successes: number;
  readonly #maxTrialMs: number;
  readonly #maxHalfOpenMs: number;
  readonly #classify: (outcome: CircuitOutcome) => CircuitVerdict;
  readonly #onStateChange: ((change: CircuitChange) => void) | undefined;
  readonly #clock: Clock;
  #trip: CircuitTrip;
  #openUntil: number | undefined;
  #trials = new Set<Call>();
  /** For all calls of this generation that bring nothing of their own. */
  #plain = this.#begin(this.#trials, undefined);
  #succeeded = 0;
  #halfOpenAt: number | undefined;
  #told: CircuitState = "closed";
  #running = 0;
  #rejected = 0;
  #opened = 0;
  #openings = 0;

  static {
    setStage(CircuitBreaker, (breaker) => ({
      hasMemory: true,
      enter: () => breaker.#letIn(undefined),
      leave: (entered, isFulfilled, result, around) => {
        const call = entered as Call;
        if (isFulfilled) call.succeed(result);
        else if (around.signal?.aborted === true) breaker.#end(call, undefined, false, result);
        else call.fail(result);
        return undefined;
      },
    }));
  }

  constructor(options: CircuitBreakerOptions = {}) {
    const { failures = 5, cooldownMs = 30_000, maxTrials = 1, successes = 1 } = options;
    const { maxTrialMs = cooldownMs, maxHalfOpenMs = Infinity } = options;
    this.#makeTrip = checkFunction("trip", options.trip ?? consecutive(failures));
    checkMs("cooldownMs", cooldownMs, { min: 1 });
    this.#cooldown = checkFunction("cooldown", options.cooldown ?? (() => cooldownMs));
    this.#maxTrials = checkInteger("maxTrials", maxTrials, { min: 1 });
    this.#successes = checkInteger("successes", successes, { min: 1 });
    this.#maxTrialMs = checkMs("maxTrialMs", maxTrialMs, { min: 1 });
    this.#maxHalfOpenMs = checkMs("maxHalfOpenMs", maxHalfOpenMs, { min: 1, infinity: true });
    this.#classify = checkFunction("classify", options.classify ?? classifyOutcome);
    this.#onStateChange = options.onStateChange;
    if (this.#onStateChange !== undefined) checkFunction("onStateChange", this.#onStateChange);
    this.#clock = options.clock ?? systemClock;
    this.#trip = this.#makeTrip(this.#clock);
    this.name = options.name;
    register("circuit-breaker", options, this);
  }

  get state(): CircuitState {
    if (this.#openUntil === undefined) return "closed";
    return this.retryAfterMs > 0 ? "open" : "half-open";
  }

  /** How long until a trial may be admitted; 0 if that isn't a matter of time. */
  get retryAfterMs(): number {
    return this.#openUntil === undefined ? 0 : Math.max(0, this.#openUntil - this.#clock.now());
  }

  /** What it remembers of the calls since it was last closed. */
  get trip(): CircuitTrip {
    return this.#trip;
  }

  /** Calls that passed and have not ended. */
  get running(): number {
    return this.#running;
  }

  stats(): CircuitBreakerStats {
    return {
      state: this.state,
      failures: this.#trip.failures,
      running: this.#running,
      trials: this.#trials.size,
      rejected: this.#rejected,
      opened: this.#opened,
      openings: this.#openings,
    };
  }

  /** Calls `fn` at once, or rejects with `CircuitOpenError` at once. */
  run<T>(fn: Task<T>, options: WaitOptions = {}): Promise<T> {
    // Not `async`: one frame more would be most of what a closed breaker costs.
    try {
      checkWait(options);
      const { signal } = options;
      const call = this.#letIn(signal);
      try {
        return whenSettled(fn({ signal }), call.succeed<T>, call.fail);
      } catch (error) {
        return call.fail(error);
      }
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Opens it by hand for so long, at least 0: with 0 it is half-open. `openings` is what it counts then. */
  open(forMs: number, openings: number = this.#openings + 1): void {
    checkMs("forMs", forMs, { min: 0 });
    checkInteger("openings", openings, { min: 1 });
    const openUntil = this.#clock.now() + forMs; // first: it may throw, as may the next
    this.#trip = this.#makeTrip(this.#clock);
    this.#openings = openings;
    this.#openUntil = openUntil;
    this.#opened += 1;
    this.#turnOver(forMs > 0 ? "open" : "half-open");
  }

  /** Closes it by hand. */
  close(): void {
    if (this.#openUntil === undefined) return;
    this.#openUntil = undefined;
    this.#openings = 0;
    this.#turnOver("closed");
  }

  #letIn(signal: AbortSignal | undefined): Call {
    const call = this.#admit(signal);
    this.#running += 1;
    return call;
  }

  #admit(signal: AbortSignal | undefined): Call {
    if (this.mode === "isolated") return this.#refuse(Infinity);
    if (this.mode === "disabled") return this.#begin(undefined, signal);
    if (this.#openUntil !== undefined) return this.#admitTrial(signal);
    const isTimed = this.#trip.slowMs !== undefined;
    if (signal === undefined && !isTimed) return this.#plain;
    return this.#begin(this.#trials, signal, isTimed ? this.#clock.now() : 0);
  }

  #admitTrial(signal: AbortSignal | undefined): Call {
    const now = this.#clock.now();
    if (now - (this.#halfOpenAt ?? now) >= this.#maxHalfOpenMs) this.#reopen(undefined);
    for (const trial of this.#trials) {
      if (now - trial.startedAt < this.#maxTrialMs) break;
      this.#trials.delete(trial);
    }
    const { retryAfterMs } = this;
    if (retryAfterMs > 0 || this.#trials.size >= this.#maxTrials) return this.#refuse(retryAfterMs, signal);
    const call = this.#begin(this.#trials, signal, now);
    this.#trials.add(call); // before anything is awaited or told, so that no other call slips in
    this.#halfOpenAt ??= now;
    this.#tell("half-open");
    return call;
  }

  #refuse(retryAfterMs: number, signal?: AbortSignal): Call {
    this.#rejected += 1;
    if (this.mode === "metrics-only") return this.#begin(undefined, signal);
    const error = new CircuitOpenError(retryAfterMs);
    notice?.("rejected", this, error);
    throw error;
  }

  #begin(generation: Set<Call> | undefined, signal: AbortSignal | undefined, startedAt = 0): Call {
    const call: Call = {
      startedAt,
      succeed: (value) => {
        this.#end(call, generation, true, value);
        return value;
      },
      fail: (reason) => {
        this.#end(call, signal?.aborted === true ? undefined : generation, false, reason);
        throw reason;
      },
    };
    return call;
  }

  #end(call: Call, generation: Set<Call> | undefined, isFulfilled: boolean, result: unknown): void {
    this.#running -= 1;
    if (this.#openUntil !== undefined) this.#trials.delete(call); // before anything of the user's is called, which may throw
    if (generation !== this.#trials) return;
    const isPlain = isFulfilled && this.#classify === classifyOutcome; // nearly each call, which needs no outcome then
    const outcome = isPlain ? undefined : outcomeOf(isFulfilled, result);
    const verdict = outcome === undefined ? "success" : this.#classify(outcome);
    if (verdict === "ignore" || generation !== this.#trials) return;
    const isFailure = verdict === "failure";
    const { slowMs } = this.#trip;
    const isSlow = slowMs !== undefined && this.#clock.now() - call.startedAt >= slowMs;
    if (this.#openUntil === undefined) {
      if (this.#trip.record(isFailure, isSlow)) this.#reopen(outcome ?? outcomeOf(isFulfilled, result));
    } else if (isFailure || isSlow) this.#reopen(outcome ?? outcomeOf(isFulfilled, result));
    else if ((this.#succeeded += 1) >= this.#successes) this.close();
  }

  #reopen(outcome: CircuitOutcome | undefined): void {
    const forMs = this.#cooldown({ openings: this.#openings + 1, outcome });
    this.open(checkMs("what cooldown returns", forMs, { min: 0 }));
  }

  #turnOver(to: CircuitState): void {
    this.#trials = new Set();
    this.#plain = this.#begin(this.#trials, undefined);
    this.#succeeded = 0;
    this.#halfOpenAt = undefined;
    this.#tell(to);
  }

  #tell(to: CircuitState): void {
    const from = this.#told;
    this.#told = to;
    if (from !== to) tell(this.#onStateChange, { from, to });
  }
}

function outcomeOf(isFulfilled: boolean, result: unknown): CircuitOutcome {
  return isFulfilled ? { status: "fulfilled", value: result } : { status: "rejected", reason: result };
}

interface Call {
  /** Of a trial, and of a call that may be slow. */
  readonly startedAt: number;
  readonly succeed: <T>(value: T) => T;
  readonly fail: (reason: unknown) => never;
}
