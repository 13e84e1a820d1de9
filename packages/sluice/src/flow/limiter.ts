/**
 * Runs at most `concurrency` functions at a time, the others in the order they were handed in. With a `capacity` it is
 * a bulkhead: a dependency that has become slow fills its own line and nobody else's. It is an executor, too: it pauses,
 * closes, drains and aborts.
 */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { ClearedError, ClosedError, QueueFullError } from "../errors.ts";
import { checkInteger, checkMs, checkPriority, checkWait, checkWeight } from "../internal/check.ts";
import { isContextFree } from "../internal/async-context.ts";
import { keepModel } from "../internal/model.ts";
import { register } from "../internal/names.ts";
import { PriorityWaitList } from "../internal/priority-wait-list.ts";
import { notice, probe } from "../internal/probe.ts";
import { setStage } from "../internal/stage.ts";
import type { Policy, Task, WaitOptions } from "../policy.ts";
import { KnownRequests } from "./limiter/known-requests.ts";
import type { LimiterOptions, LimiterRunOptions, LimiterStats, StartRate } from "./limiter/options.ts";
import { type Place, Request, type Work, weightOf } from "./limiter/request.ts";
import { Rest } from "./limiter/rest.ts";
import type { Run } from "./limiter/run.ts";
import { type Granted, Runner } from "./limiter/runner.ts";
import { SelfWaits } from "./limiter/self-waits.ts";
import { stageFor } from "./limiter/stage.ts";
import { StateWaits } from "./limiter/state-waits.ts";
import { checkWhenFull, choose, type WhenFull } from "./limiter/when-full.ts";

const PLAIN: LimiterRunOptions = {};

export class Limiter implements Policy {
  // I1  0 <= #taken <= concurrency, but for what a lowered limit still has to come down; a call has its slots from the
  //     grant until what `fn` returned has settled, or until it is abandoned
  // I2  somebody waits only while the next in line wants more slots than are free, the limiter is paused or rests, or
  //     the next is about to hear of its abort; nobody waits for more than concurrency
  // I3  slots go out in the order of the line, which no newcomer overtakes
  // I4  of those in line, the first `capacity` are accepted; once closed there are no others
  // I5  each call counts once: among those that run, wait, are completed, rejected, dropped, cleared, timed out, aborted
  //     or waited for themselves
  readonly capacity: number;
  readonly name: string | undefined;
  readonly #whenFull: WhenFull;
  readonly #rate: StartRate | undefined;
  readonly #clock: Clock;
  readonly #line: PriorityWaitList<Granted, Work>;
  readonly #known = new KnownRequests();
  readonly #rest: Rest;
  readonly #selfWaits: SelfWaits | undefined;
  readonly #runner: Runner;
  readonly #counts = { rejected: 0, dropped: 0, cleared: 0 };
  #states: StateWaits | undefined;
  #concurrency: number;
  /** Below this a slot may go out: `concurrency`, or 0 while nothing may start. */
  #bound: number;
  #taken = 0;
  /** How many slots more are taken than calls run. */
  #surplus = 0;
  #isPaused = false;
  #isClosed = false;

  static {
    setStage(Limiter, (limiter) => stageFor(limiter.#runner, limiter.#selfWaits, () => limiter.#tryTake()));
  }

  /** At most `concurrency` calls at a time: an integer >= 1, or `Infinity`. */
  constructor(concurrency: number, options: LimiterOptions = {}) {
    const { whenFull = "reject", rate, clock = systemClock, stallMs } = options;
    this.#concurrency = this.#bound = checkInteger("concurrency", concurrency, { min: 1, infinity: true });
    this.capacity = checkInteger("capacity", options.capacity ?? Infinity, { min: 0, infinity: true });
    this.#whenFull = checkWhenFull(whenFull);
    this.#rate = rate;
    this.#clock = clock;
    const agingMs = checkMs("agingMs", options.agingMs ?? 1_000);
    this.#line = new PriorityWaitList({ owner: this, agingMs, onLeave: (work) => this.#left(work) });
    this.#rest = new Rest(clock, () => this.#goOn());
    const limitMs = checkMs("stallMs", stallMs ?? (isContextFree() ? 500 : Infinity));
    this.#selfWaits = limitMs < Infinity ? new SelfWaits(clock, limitMs) : undefined;
    this.#runner = new Runner(clock, this.#selfWaits, (weight) => this.#giveBack(weight));
    this.name = options.name;
    register("limiter", options, this);
  }

  get concurrency(): number {
    return this.#concurrency;
  }

  /** Calls that run. */
  get running(): number {
    return this.#taken - this.#surplus;
  }

  get waiting(): number {
    return this.#line.size;
  }

  get paused(): boolean {
    return this.#isPaused;
  }

  get closed(): boolean {
    return this.#isClosed;
  }

  /** Whether calls wait because of the limits: for slots, or for the rate. */
  get saturated(): boolean {
    return this.waiting > 0 && !this.#isPaused;
  }

  stats(): LimiterStats {
    return {
      concurrency: this.#concurrency,
      capacity: this.capacity,
      running: this.running,
      taken: this.#taken,
      waiting: this.waiting,
      oldestWaitMs: this.#line.oldestWaitMs(this.#clock),
      completed: this.#runner.completed,
      ...this.#counts,
      selfWaits: this.#selfWaits?.count ?? 0,
      timedOut: this.#line.timedOut,
      aborted: this.#line.aborted,
      overdue: this.#runner.overdue,
      abandoned: this.#runner.abandoned,
      paused: this.#isPaused,
      closed: this.#isClosed,
    };
  }

  /**
   * Calls `fn` in a slot: at once if one is free, else when its turn comes. The slot is kept until what `fn` returned
   * has settled, also if the caller has long stopped waiting for it: a call that outlives its deadline is still a load
   * on what is protected. `fn`'s signal aborts with the caller's and with `abort`; where the caller gave none it
   * outlives the call, so take back the listeners you add. Functions that wait for nothing run one after the other, as
   * promise reactions do, and make way for timers and I/O every few milliseconds.
   * @throws RangeError at once if there are fewer slots in all than `weight`
   */
  run<T>(fn: Task<T>, options: LimiterRunOptions = PLAIN): Promise<T> {
    try {
      const { signal, priority = 0, weight = 1 } = options;
      const task = probe === undefined ? fn : probe.slot(this, fn, weight);
      let work: Work = task;
      if (options !== PLAIN) {
        checkWait(options);
        checkPriority(priority);
        checkWeight(weight, this.#concurrency);
        if (Request.isNeeded(options)) work = new Request(task, options);
      }
      this.#refuseIfClosed();
      const started = this.#admits(weight, priority) ? this.#startNow(work, signal, weight) : this.#wait(work, options);
      return started as Promise<T>;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Who waits with this `id` goes on waiting with another priority, behind who has it already. Returns how many. */
  setPriority(id: unknown, priority: number): number {
    checkPriority(priority);
    const requests = this.#known.withId(id);
    for (const { wait } of requests) if (wait !== undefined) this.#line.move(wait, priority);
    this.#admit();
    return requests.length;
  }

  /**
   * Another limit from now on. If it is higher, those who wait start in this turn. If it is lower, what runs goes on, and
   * nothing starts until less runs than the limit; who waits for more slots than there will be gets a `RangeError`.
   */
  resize(concurrency: number): void {
    this.#concurrency = checkInteger("concurrency", concurrency, { min: 1, infinity: true });
    this.#bound = 0; // or who is next in line would start by the limit that was
    for (const wait of this.#line.inOrder()) {
      const weight = weightOf(wait.brought);
      if (weight > concurrency)
        wait.reject(this.#refuse(new RangeError(`weight is ${weight} and the limit now ${concurrency}`)));
    }
    this.#goOn();
  }

  /** Starts nothing until `resume`. What runs goes on, and who comes waits. */
  pause(): void {
    this.#isPaused = true;
    this.#bound = 0;
  }

  resume(): void {
    this.#isPaused = false;
    this.#goOn();
  }

  /** Ends all waits with `reason`; what runs goes on. Returns how many there were. @param reason default `ClearedError` */
  clear(reason: unknown = new ClearedError("limiter")): number {
    const { waiting } = this;
    this.#counts.cleared += waiting;
    this.#turnOut(reason);
    return waiting;
  }

  /** Resolves as soon as nothing runs or waits. It turns nobody away: `close` first, or newcomers can put it off. */
  drain(options: WaitOptions = {}): Promise<void> {
    return this.#waitFor(0, 0, options);
  }

  /** Resolves as soon as nobody waits, though calls may run. */
  empty(options: WaitOptions = {}): Promise<void> {
    return this.below(1, options);
  }

  /** Resolves as soon as fewer than `count` calls wait: for who would rather not hand in more. An integer >= 1. */
  below(count: number, options: WaitOptions = {}): Promise<void> {
    return this.#waitFor(count, 1, options);
  }

  /** Newcomers, and callers that wait to be accepted, get `ClosedError`; what was accepted runs. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    notice?.("closed", this);
    this.#counts.rejected += Math.max(0, this.waiting - this.capacity);
    if (this.waiting > this.capacity) this.#turnOut(new ClosedError("limiter"), this.capacity);
  }

  /**
   * Closes, and ends what was accepted: who waits is rejected with `reason`, and the signals of those that run abort
   * with it; their slots stay taken until they have ended. @param reason as for `AbortController.abort`
   */
  abort(reason?: unknown): void {
    this.#isClosed = true;
    notice?.("closed", this);
    const why = this.#runner.stop(reason);
    this.#counts.rejected += this.waiting;
    this.#turnOut(why);
  }

  #waitFor(count: number, min: number, options: WaitOptions): Promise<void> {
    try {
      checkInteger("count", count, { min });
      checkWait(options);
      this.#states ??= new StateWaits(this.#clock, this);
      return this.#states.wait(count, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #tryTake(): boolean {
    if (this.#isClosed || !this.#admits(1, 0)) return false;
    this.#take(1);
    return true;
  }

  #admits(weight: number, priority: number): boolean {
    if (this.#taken + weight > this.#bound) return false;
    if (this.#line.size > 0 && !this.#line.wouldBeFirst(priority, this.#clock)) return false;
    return this.#rate === undefined || this.#rate.tryTake();
  }

  #startNow(work: Work, signal: AbortSignal | undefined, weight: number): Promise<unknown> {
    this.#take(weight);
    return this.#runner.start(work, signal, weight);
  }

  #wait(work: Work, options: LimiterRunOptions): Promise<unknown> {
    this.#line.refuseHaste(options);
    const policy = this.waiting < this.capacity ? "wait" : choose(this.#whenFull, options);
    // All may have changed meanwhile, by `whenFull` or the rate.
    this.#refuseIfClosed();
    options.signal?.throwIfAborted();
    checkWeight(options.weight ?? 1, this.#concurrency);
    if (policy === "caller-runs") return this.#startNow(work, options.signal, 0);
    if (policy === "reject") throw this.#refuse(new QueueFullError(this.capacity));
    if (policy === "drop-newest") throw this.#drop();
    const within = this.#selfWaits?.find();
    const joining = work instanceof Request || within === undefined ? work : new Request(work, options);
    const wait = this.#line.wait(options, this.#clock, joining, options.priority);
    if (joining instanceof Request) this.#remember(joining, wait as Place, within);
    if (policy === "drop-oldest") this.#line.leastUrgent?.reject(this.#drop());
    if (this.#taken < this.#bound) this.#admit(); // the first, whom the rate kept, or who it is now
    // A reaction made here runs in the async context of whoever calls, and keeps less than a suspended function would.
    return wait.then(this.#runner.startGranted);
  }

  #refuseIfClosed(): void {
    if (this.#isClosed) throw this.#refuse(new ClosedError("limiter"));
  }

  #take(weight: number): void {
    this.#taken += weight;
    this.#surplus += weight - 1;
  }

  #giveBack(weight: number): void {
    this.#taken -= weight;
    this.#surplus -= weight - 1;
    this.#admit();
  }

  /** Hands out what is free, in the turn in which it has become so: nobody can slip in (I3). */
  #admit(): void {
    for (let next = this.#line.first; next !== undefined && this.#mayStart(next); next = this.#line.first) {
      const { brought, watchers } = next;
      const weight = weightOf(brought);
      this.#line.remove(next);
      this.#take(weight);
      if (brought instanceof Request) this.#forget(brought);
      next.grant(this.#runner.toGrant(brought, watchers?.signal, weight));
    }
    this.#onChange();
  }

  #mayStart(next: Place): boolean {
    if (this.#taken + weightOf(next.brought) > this.#bound || next.isDoomed) return false;
    if (this.#rest.isDue()) this.#bound = 0;
    else if (this.#rate === undefined || this.#takesRate(this.#rate)) return true;
    return false;
  }

  /** A rate that throws ends all waits: else nobody would hear of it. */
  #takesRate(rate: StartRate): boolean {
    try {
      if (rate.tryTake()) return true;
      this.#rest.begin(Math.max(1, rate.retryAfterMs()));
      this.#bound = 0;
    } catch (error) {
      this.#counts.rejected += this.waiting;
      this.#turnOut(error);
    }
    return false;
  }

  /** A wait has left without a slot. */
  #left(work: Work): void {
    if (work instanceof Request) this.#forget(work);
    this.#admit();
  }

  #remember(request: Request, wait: Place, within: Run | undefined): void {
    request.wait = wait;
    this.#known.add(request);
    if (within !== undefined) this.#selfWaits?.joined(request, within);
    this.#onChange();
  }

  #forget(request: Request): void {
    this.#known.delete(request);
    this.#selfWaits?.left(request);
  }

  #onChange(): void {
    const { first } = this.#line;
    if (first === undefined) this.#relax();
    if (this.#selfWaits?.isConcerned === true) {
      this.#selfWaits.judge(
        this.#taken,
        first !== undefined && this.#taken + weightOf(first.brought) > this.#concurrency,
      );
    }
    this.#states?.tell();
  }

  /** What it rested for is past. */
  #relax(): void {
    this.#rest.end();
    this.#bound = this.#isPaused ? 0 : this.#concurrency;
  }

  #goOn(): void {
    this.#relax();
    this.#admit();
  }

  #turnOut(reason: unknown, spared = 0): void {
    this.#bound = 0; // or who is next in line would start in the midst of it
    this.#line.rejectAll(reason, spared);
    this.#goOn();
  }

  #drop(): Error {
    const error = new QueueFullError(this.capacity);
    notice?.("dropped", this, error);
    this.#counts.dropped += 1;
    return error;
  }

  #refuse(error: Error): Error {
    notice?.("rejected", this, error);
    this.#counts.rejected += 1;
    return error;
  }
}

keepModel(new Limiter(1));
