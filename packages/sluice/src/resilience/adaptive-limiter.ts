/**
 * Limits how many calls run at once to what the dependency can take, which it finds out from how calls end and how long
 * they take: the limit rises while that does no harm, and falls when calls get slower or are refused. For a limit you
 * know, use `Limiter`; for one per unit of time, `RateLimiter`.
 *
 * How the limit is found is a strategy: `gradient()` goes by latency and needs no figures, `aimd()` by failures and a
 * latency you name. Who is turned away when it is not enough: see `codel` and `shedByCriticality`.
 */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { OverloadedError } from "../errors.ts";
import {
  checkFunction,
  checkFunctions,
  checkInteger,
  checkOneOf,
  checkPriority,
  checkWait,
  wrongType,
} from "../internal/check.ts";
import { register } from "../internal/names.ts";
import { PriorityWaitList } from "../internal/priority-wait-list.ts";
import { notice, probe } from "../internal/probe.ts";
import { setStage } from "../internal/stage.ts";
import { whenSettled } from "../internal/when-settled.ts";
import type { Policy, Task } from "../policy.ts";
import type {
  AdaptiveLimiterOptions,
  AdaptiveLimiterRunOptions,
  AdaptiveLimiterStats,
  Criticality,
  JoinTerms,
  LimitRule,
  LimitSample,
  LimitStrategy,
  LineRule,
  ShedRule,
} from "./adaptive-limiter-options.ts";
import type { CircuitOutcome } from "./classify.ts";
import { classifyLoad, type LoadVerdict } from "./load-verdict.ts";

const PLAIN: AdaptiveLimiterRunOptions = {};
const IN_ORDER: JoinTerms = { maxWaitMs: Infinity, isNewestFirst: false };
const PRIORITIES: Readonly<Record<Criticality, number>> = { critical: 1, normal: 0, sheddable: -1 };
const CRITICALITIES = ["critical", "normal", "sheddable"] as const;
/** Of a call in the moving average of latencies. */
const WEIGHT = 0.1;
/** So small that all who ever wait newest first stay below the next priority. */
const NEWER = 2 ** -32;

export class AdaptiveLimiter implements Policy {
  // I1  a call has a place from the grant until what `fn` returned has settled
  // I2  somebody waits only while `concurrency` places are taken, or the next is about to hear of its abort
  // I3  places go out in the order of the line, which no newcomer overtakes but by priority or `isNewestFirst`
  // I4  minConcurrency <= #limit <= maxConcurrency, whatever the strategy says
  // I5  each call counts once: among those that run, wait, are completed, rejected, shed, expired, timed out or aborted
  readonly minConcurrency: number;
  readonly maxConcurrency: number;
  readonly maxWaiting: number;
  readonly name: string | undefined;
  readonly #rule: LimitRule;
  readonly #lineRule: LineRule | undefined;
  readonly #shed: ShedRule | undefined;
  readonly #classify: (outcome: CircuitOutcome) => LoadVerdict;
  readonly #clock: Clock;
  /** Who may be expired brings its options along. */
  readonly #line: PriorityWaitList<void, AdaptiveLimiterRunOptions | undefined>;
  readonly #counts = { completed: 0, overloads: 0, rejected: 0, shed: 0, expired: 0 };
  #limit: number;
  #running = 0;
  #latencyMs = 0;
  #newest = 0;

  static {
    setStage(AdaptiveLimiter, (limiter) => ({
      hasMemory: true,
      enter: (asked) => limiter.#enterNow(asked),
      leave: (call, isFulfilled, result, around) =>
        limiter.#leave(call as Call, isFulfilled, result, isFulfilled ? undefined : around.signal),
    }));
  }

  constructor(strategy: LimitStrategy, options: AdaptiveLimiterOptions = {}) {
    const { minConcurrency = 1, maxConcurrency = 1_000, maxWaiting = Infinity } = options;
    const { initialConcurrency = Math.min(maxConcurrency, Math.max(minConcurrency, 20)) } = options;
    checkFunction("strategy", strategy);
    checkFunctions(options, ["discipline", "shed", "classify"]);
    this.minConcurrency = checkInteger("minConcurrency", minConcurrency, { min: 1 });
    this.maxConcurrency = checkInteger("maxConcurrency", maxConcurrency, { min: minConcurrency });
    this.#limit = checkInteger("initialConcurrency", initialConcurrency, { min: minConcurrency });
    if (initialConcurrency > maxConcurrency)
      throw new RangeError(
        `initialConcurrency must be <= maxConcurrency of ${maxConcurrency}, got ${initialConcurrency}`,
      );
    this.maxWaiting = checkInteger("maxWaiting", maxWaiting, { min: 0, infinity: true });
    this.#rule = strategy();
    this.#lineRule = options.discipline?.();
    if (this.#lineRule !== undefined && typeof this.#lineRule.join !== "function")
      throw wrongType("what discipline returns", this.#lineRule, "an object with a method join");
    this.#shed = options.shed;
    this.#classify = options.classify ?? classifyLoad;
    this.#clock = options.clock ?? systemClock;
    this.#line = new PriorityWaitList({ owner: this, onLeave: (brought) => this.#left(brought) });
    this.name = options.name;
    register("adaptive-limiter", options, this);
  }

  /** The limit of now. */
  get concurrency(): number {
    return Math.floor(this.#limit);
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#line.size;
  }

  stats(): AdaptiveLimiterStats {
    const { timedOut, aborted } = this.#line;
    return {
      concurrency: this.concurrency,
      maxWaiting: this.maxWaiting,
      running: this.#running,
      waiting: this.waiting,
      oldestWaitMs: this.#line.oldestWaitMs(this.#clock),
      latencyMs: this.#latencyMs,
      ...this.#counts,
      timedOut: timedOut - this.#counts.expired,
      aborted,
    };
  }

  /**
   * Calls `fn` at once if the limit allows, else when its turn comes. The place is kept until what `fn` returned has
   * settled, also if the caller has long stopped waiting for it: it is still a load on the dependency.
   * Rejects with `OverloadedError` if it is turned away.
   */
  run<T>(fn: Task<T>, options: AdaptiveLimiterRunOptions = PLAIN): Promise<T> {
    try {
      const { signal, criticality = "normal", priority = PRIORITIES[criticality] } = options;
      if (options !== PLAIN) {
        checkWait(options);
        checkOneOf("criticality", criticality, CRITICALITIES);
        checkPriority(priority);
      }
      const task = probe === undefined ? fn : probe.slot(this, fn, 1);
      if (this.#sheds(criticality)) throw this.#refuse("shed");
      if (this.#running >= this.concurrency || !this.#isNext(priority)) return this.#wait(task, options, priority);
      return this.#start(this.#begin(), task, signal);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** As `run` does for a call that need not wait, and of which nothing more has to be known. */
  #enterNow({ criticality, priority }: AdaptiveLimiterRunOptions): Call | undefined {
    if (probe !== undefined || this.#shed !== undefined || criticality !== undefined || priority !== undefined)
      return undefined;
    return this.waiting > 0 || this.#running >= this.concurrency ? undefined : this.#begin();
  }

  #sheds(criticality: Criticality): boolean {
    const isShed = this.#shed?.(criticality, (this.#running + this.waiting) / this.concurrency) ?? false;
    if (typeof isShed !== "boolean") throw wrongType("what shed returns", isShed, "a boolean");
    return isShed;
  }

  #isNext(priority: number): boolean {
    return this.waiting === 0 || this.#line.wouldBeFirst(priority, this.#clock);
  }

  #wait<T>(fn: Task<T>, options: AdaptiveLimiterRunOptions, priority: number): Promise<T> {
    this.#line.refuseHaste(options);
    if (this.waiting >= this.maxWaiting) throw this.#refuse("rejected");
    const { maxWaitMs, isNewestFirst } = this.#lineRule?.join(this.#clock.now(), this.waiting) ?? IN_ORDER;
    const { signal, timeoutMs = Infinity } = options;
    const rank = isNewestFirst ? priority + (this.#newest += 1) * NEWER : priority;
    const wait =
      maxWaitMs < timeoutMs
        ? this.#line.wait({ signal, timeoutMs: maxWaitMs }, this.#clock, options, rank)
        : this.#line.wait(options, this.#clock, undefined, rank);
    // A reaction made here runs in the async context of whoever calls.
    return wait.then(() => this.#startGranted(fn, signal));
  }

  #startGranted<T>(fn: Task<T>, signal: AbortSignal | undefined): Promise<T> {
    if (signal?.aborted === true) {
      this.#line.aborted += 1; // since the grant
      this.#free();
      throw signal.reason;
    }
    this.#running -= 1; // the place is taken again in this turn
    let call: Call;
    try {
      call = this.#begin();
    } catch (error) {
      this.#serve(); // or it would be free, and whoever waits would go on waiting (I2)
      throw error;
    }
    return this.#start(call, fn, signal);
  }

  /** Throws what `fn` does. */
  #start<T>(call: Call, fn: Task<T>, signal: AbortSignal | undefined): Promise<T> {
    const succeed = (value: T): T => {
      this.#leave(call, true, value, undefined);
      return value;
    };
    const fail = (reason: unknown): never => {
      this.#leave(call, false, reason, signal);
      throw reason;
    };
    let result: T | PromiseLike<T>;
    try {
      result = fn({ signal });
    } catch (error) {
      return fail(error);
    }
    return whenSettled(result, succeed, fail);
  }

  #begin(): Call {
    const startedAt = this.#clock.now(); // foreign code first
    this.#running += 1;
    return { startedAt, running: this.#running };
  }

  #leave(call: Call, isFulfilled: boolean, result: unknown, signal: AbortSignal | undefined): undefined {
    this.#counts.completed += 1;
    try {
      if (!isFulfilled && signal?.aborted === true) return; // says nothing about the dependency
      const verdict = this.#classify(
        isFulfilled ? { status: "fulfilled", value: result } : { status: "rejected", reason: result },
      );
      if (verdict !== "ignore") this.#learn(call, verdict === "overload");
    } finally {
      this.#free();
    }
  }

  #free(): void {
    this.#running -= 1;
    this.#serve();
  }

  #learn({ startedAt, running }: Call, isOverload: boolean): void {
    const endedAt = this.#clock.now();
    const latencyMs = endedAt - startedAt;
    if (isOverload) this.#counts.overloads += 1;
    this.#latencyMs += (latencyMs - this.#latencyMs) * (this.#latencyMs === 0 ? 1 : WEIGHT);
    const sample: LimitSample = { startedAt, endedAt, running, isOverload };
    const next = this.#rule.next(this.#limit, sample);
    if (next > 0) this.#limit = this.#clamp(next);
  }

  #clamp(limit: number): number {
    return Math.min(this.maxConcurrency, Math.max(this.minConcurrency, limit));
  }

  /** Hands out what is free, in the turn in which it has become so: nobody can slip in (I3). */
  #serve(): void {
    for (let next = this.#line.first; next !== undefined; next = this.#line.first) {
      if (this.#running >= this.concurrency || next.isDoomed) return;
      this.#line.remove(next);
      this.#running += 1;
      next.grant();
    }
  }

  /** A wait has left without a place. */
  #left(brought: AdaptiveLimiterRunOptions | undefined): Promise<never> | undefined {
    this.#serve();
    if (brought === undefined || brought.signal?.aborted === true) return undefined;
    return Promise.reject(this.#refuse("expired"));
  }

  #refuse(why: "rejected" | "shed" | "expired"): OverloadedError {
    const error = new OverloadedError(Math.max(1, (this.#latencyMs * (this.waiting + 1)) / this.concurrency));
    this.#counts[why] += 1;
    notice?.("rejected", this, error);
    return error;
  }
}

type Call = Pick<LimitSample, "startedAt" | "running">;
