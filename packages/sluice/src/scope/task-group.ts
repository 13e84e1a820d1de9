/**
 * Structured concurrency for promises: children end before their group does, whatever becomes of them. The first that
 * fails cancels the others, or what a `Joiner` says. For a list of items use `mapLimit`, for named branches `fanOut`.
 */
import type { Clock, Timer, TimerTask } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { ClosedError, TimeoutError } from "../errors.ts";
import { Watcher } from "../internal/abort.ts";
import { checkFunction, checkInteger, checkMs, checkSignal, checkWait } from "../internal/check.ts";
import { asyncDispose } from "../internal/dispose.ts";
import { EitherSignal } from "../internal/either-signal.ts";
import { register } from "../internal/names.ts";
import { notice, type Probe, probe } from "../internal/probe.ts";
import { WaitList } from "../internal/wait-list.ts";
import { whenSettled } from "../internal/when-settled.ts";
import type { Task, WaitOptions } from "../policy.ts";
import { Cancellation, CancellationContext, isEcho } from "./cancellation.ts";
import { Child } from "./child.ts";
import { claim, failFast, type Joiner, type TaskOutcome } from "./joiner.ts";
import type { DetachOptions, TaskGroupContext, TaskGroupOptions, TaskGroupStats } from "./task-group-options.ts";

/** `T` is what its children give, `R` what `join` gives. */
export interface TaskGroup<T = unknown, R = void> extends AsyncDisposable {
  readonly concurrency: number;
  readonly name: string | undefined;
  /** Aborts when the group is cancelled. */
  readonly signal: AbortSignal;
  stats(): TaskGroupStats;
  /**
   * Starts a child: calls `fn` in the same turn if it may start, else in the order of the calls. The promise is for
   * whoever wants this child's value; nobody has to look at it, since `join` tells of its failure. That its own `signal`
   * ended it, or kept it from starting, is no failure. Rejects without calling `fn`: once the group is cancelled with
   * the reason, once it has ended with `ClosedError`.
   */
  run<U extends T>(fn: (context: TaskGroupContext) => U | PromiseLike<U>, options?: WaitOptions): Promise<U>;
  /**
   * Work that may outlive the group: called at once, neither awaited nor cancelled, and counted while it goes on.
   * Resolves when it has ended, also if it failed.
   */
  detach(fn: Task<unknown>, options: DetachOptions): Promise<void>;
  /**
   * Resolves when all children have ended, those that were started meanwhile included; the group has ended then. Gives
   * what its joiner says, or rejects with what cancelled the group from outside. The same promise each time. A child
   * that awaits it waits for itself.
   */
  join(): Promise<R>;
  /**
   * Cancels the children: who runs has its signal aborted, who waits is rejected. Idempotent.
   * @param reason as for `AbortController.abort`
   */
  abort(reason?: unknown): void;
}

type Work<T> = (context: TaskGroupContext) => T | PromiseLike<T>;

class Group<T = unknown, R = void> implements TaskGroup<T, R>, TimerTask {
  // I1  #running children have a slot, from their grant until what `fn` returned has settled; at most `concurrency`
  // I2  somebody waits only while all slots are taken and the group is open
  // I3  children start in the order of the calls, and `index` counts them
  // I4  a timer and a watcher of the parent exist at most while the group is open
  // I5  once ended nothing runs or waits, and nothing starts
  readonly concurrency: number;
  readonly name: string | undefined;
  readonly #joiner: Joiner<T, R>;
  readonly #timeoutMs: number;
  readonly #clock: Clock;
  readonly #onLateError: ((error: unknown) => void) | undefined;
  readonly #cancellation = new Cancellation();
  readonly #context = new CancellationContext(this.#cancellation);
  /** None where nobody has to wait. */
  readonly #line: WaitList<void> | undefined;
  readonly #inside = new Set<Child<unknown>>();
  readonly #parent = new ParentWatcher(this);
  readonly #counts = { fulfilled: 0, failed: 0, cancelled: 0, lateErrors: 0, detached: 0 };
  #timer: Timer | undefined;
  #running = 0;
  #started = 0;
  /** Failures that came in time, should `join` not be the one to tell of them. */
  #failures: { readonly child: Child<unknown>; readonly reason: unknown }[] = [];
  /** What `join` tells, if it isn't for the joiner to say. */
  #cause: { readonly reason: unknown } | undefined;
  #joined: Promise<R> | undefined;
  readonly #ends: (() => void)[] = [];
  #ended = false;

  constructor(options: TaskGroupOptions<T, R> = {}) {
    this.concurrency = checkInteger("concurrency", options.concurrency ?? Infinity, { min: 1, infinity: true });
    this.#timeoutMs = checkMs("timeoutMs", options.timeoutMs ?? Infinity);
    checkSignal(options.signal);
    if (options.onLateError !== undefined) checkFunction("onLateError", options.onLateError);
    this.#joiner =
      options.joiner === undefined ? (failFast() as Joiner<unknown, unknown> as Joiner<T, R>) : claim(options.joiner);
    this.#line = this.concurrency === Infinity ? undefined : new WaitList<void>({ owner: this });
    this.#clock = options.clock ?? systemClock;
    this.#onLateError = options.onLateError;
    this.name = options.name;
    try {
      this.#arm(options.signal); // clock and signal are foreign code
      register(this.kind, options, this);
    } catch (error) {
      this.#disarm();
      throw error;
    }
  }

  /** For `sluice/observe`, where it has no name. */
  get kind(): string {
    return "task-group";
  }

  get signal(): AbortSignal {
    return this.#cancellation.signal;
  }

  stats(): TaskGroupStats {
    const [oldest] = this.#inside;
    return {
      concurrency: this.concurrency,
      running: this.#running,
      oldestRunMs: oldest === undefined ? 0 : this.#clock.now() - oldest.startedAt,
      waiting: this.#line?.size ?? 0,
      oldestWaitMs: this.#line?.oldestWaitMs(this.#clock) ?? 0,
      ...this.#counts,
      timedOut: this.#line?.timedOut ?? 0,
      aborted: this.#line?.aborted ?? 0,
      state: this.#ended ? "ended" : this.#cancellation.isCancelled ? "cancelled" : "open",
    };
  }

  run<U extends T>(fn: Work<U>, options: WaitOptions = {}): Promise<U> {
    const child = new Child<U>();
    try {
      checkWait(options);
      const work = probe === undefined ? fn : this.#observed(fn, probe);
      if (this.#cancellation.isCancelled) child.reject(this.#cancellation.reason, true);
      else if (this.#ended) throw new ClosedError("task group");
      else if (this.#running < this.concurrency) {
        this.#running += 1; // overtakes nobody (I2)
        this.#start(child, work, options.signal);
      } else {
        this.#line?.refuseHaste(options);
        // A reaction made here runs in the async context of whoever calls.
        this.#line?.wait(options, this.#clock).then(
          () => this.#start(child, work, options.signal),
          (reason) => child.reject(reason, this.#isEcho(reason, options.signal)),
        );
      }
    } catch (error) {
      child.reject(error, isEcho(error, options?.signal));
    }
    return child;
  }

  async detach(fn: Task<unknown>, options: DetachOptions): Promise<void> {
    const onError = checkFunction("onError", options?.onError);
    const { signal } = options;
    checkSignal(signal);
    this.#counts.detached += 1;
    try {
      await fn({ signal });
    } catch (error) {
      onError(error);
    } finally {
      this.#counts.detached -= 1;
    }
  }

  join(): Promise<R> {
    this.#joined ??= this.#whenEnded().then(() => this.#result());
    return this.#joined;
  }

  abort(reason?: unknown): void {
    if (this.#ended || this.#cancellation.isCancelled) return;
    this.#cancel(reason);
    this.#cause = this.#cancellation;
  }

  /** For a body that threw. */
  async leaveBy(error: unknown): Promise<never> {
    const isFirst = !this.#cancellation.isCancelled;
    this.abort(error);
    try {
      await this.join();
    } catch (first) {
      if (isFirst || Object.is(first, error)) throw error;
      if (!this.#cancellation.isEcho(error)) this.#tellLate(error);
      throw first;
    }
    throw error;
  }

  async [asyncDispose](): Promise<void> {
    if (this.#joined === undefined && this.#running > 0) this.abort(new ClosedError("task group"));
    await this.#whenEnded();
    if (this.#joined !== undefined) return;
    for (const reason of this.#takeUntold()) {
      if (this.#onLateError === undefined) void Promise.reject(reason);
      else this.#tellLate(reason);
    }
  }

  #arm(parent: AbortSignal | undefined): void {
    if (parent?.aborted === true) return this.abort(parent.reason);
    if (this.#timeoutMs === 0) return this.expire();
    if (parent !== undefined) this.#parent.watch(parent);
    if (this.#timeoutMs < Infinity) this.#timer = this.#clock.setTimer(this.#timeoutMs, this);
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#parent.unwatch();
  }

  onTimer(): void {
    queueMicrotask(() => this.expire()); // an abort of the same turn wins
  }

  expire(): void {
    this.abort(new TimeoutError(this.#timeoutMs));
  }

  /** Where there are no slots to run out of, nobody waits for what a child has. */
  #observed<U extends T>(fn: Work<U>, by: Probe): Work<U> {
    return this.#line === undefined ? (context) => by.enter(() => fn(context)) : by.slot(this, fn as Task<U>, 1);
  }

  /** Its slot is taken already. */
  #start<U extends T>(child: Child<U>, fn: Work<U>, own: AbortSignal | undefined): void {
    let either: EitherSignal | undefined;
    try {
      own?.throwIfAborted(); // the abort may have come between the grant and this turn
      this.#cancellation.throwIfCancelled();
      if (own !== undefined) either = new EitherSignal(own, this.signal);
      child.startedAt = this.#clock.now();
    } catch (error) {
      either?.release();
      this.#giveBack();
      return child.reject(error, this.#isEcho(error, own));
    }
    child.index = this.#started;
    this.#started += 1;
    this.#inside.add(child);
    const fail = (reason: unknown): void => {
      const isCancelled = this.#isEcho(reason, own);
      either?.release();
      this.#end(child, { status: isCancelled ? "cancelled" : "rejected", reason });
      child.reject(reason, true);
    };
    const succeed = (value: U): void => {
      either?.release();
      this.#end(child, { status: "fulfilled", value });
      child.resolve(value);
    };
    try {
      void whenSettled(fn(either === undefined ? this.#context : { signal: either.signal }), succeed, fail);
    } catch (error) {
      fail(error);
    }
  }

  #isEcho(reason: unknown, own: AbortSignal | undefined): boolean {
    return this.#cancellation.isEcho(reason) || isEcho(reason, own);
  }

  #end(child: Child<unknown>, outcome: TaskOutcome<T>): void {
    this.#inside.delete(child);
    this.#counts[outcome.status === "rejected" ? "failed" : outcome.status] += 1;
    if (!this.#cancellation.isCancelled) this.#judge(child, outcome);
    else if (outcome.status === "rejected") this.#tellLate(outcome.reason);
    this.#giveBack();
  }

  #judge(child: Child<unknown>, outcome: TaskOutcome<T>): void {
    const isFailure = outcome.status === "rejected";
    if (isFailure) this.#failures.push({ child, reason: outcome.reason });
    try {
      if (!this.#joiner.onOutcome(outcome, child.index)) return;
    } catch (reason) {
      this.#cause = { reason };
      return this.#cancel(reason);
    }
    this.#cancel(isFailure ? outcome.reason : new ClosedError("task group"));
  }

  #giveBack(): void {
    const next = this.#line?.shift();
    if (next !== undefined) return next.grant(); // handed over, never through #running: nobody can slip in (I3)
    this.#running -= 1;
    this.#endIfIdle();
  }

  #cancel(reason: unknown): void {
    this.#disarm();
    this.#cancellation.cancel(reason);
    this.#line?.rejectAll(this.#cancellation.reason);
  }

  #whenEnded(): Promise<void> {
    return new Promise((resolve) => {
      this.#ends.push(resolve);
      this.#endIfIdle();
    });
  }

  /** Only once somebody waits for the end: till then, more children may come. */
  #endIfIdle(): void {
    if (this.#running > 0 || this.#ends.length === 0) return;
    this.#ended = true;
    this.#disarm();
    for (const end of this.#ends.splice(0)) end();
  }

  #result(): R {
    if (this.#cause === undefined) return this.#joiner.result();
    const { reason } = this.#cause;
    for (const untold of this.#takeUntold()) if (!Object.is(untold, reason)) this.#tellLate(untold);
    throw reason;
  }

  #takeUntold(): unknown[] {
    const untold = this.#failures.filter(({ child }) => !child.isLookedAt);
    this.#failures = [];
    return untold.map(({ reason }) => reason);
  }

  #tellLate(reason: unknown): void {
    this.#counts.lateErrors += 1;
    if (this.#onLateError === undefined) notice?.("failed", this, reason);
    try {
      this.#onLateError?.(reason);
    } catch (thrown) {
      void Promise.reject(thrown);
    }
  }
}

/**
 * `await using group = new TaskGroup()`: leaving the block waits for the children. Whoever leaves without `join` wants
 * no result, so what still runs is cancelled first; a failure from before that, of which nobody was told, goes to
 * `onLateError`, without one it surfaces as an unhandled rejection.
 */
export const TaskGroup: new <T = unknown, R = void>(options?: TaskGroupOptions<T, R>) => TaskGroup<T, R> = Group;

/**
 * A group as one function: calls `body`, waits for the children and gives what `body` returned; if it throws, they are
 * cancelled first. What failed first is the rejection, be it a child or `body`.
 */
export async function taskGroup<V, T = unknown, R = void>(
  body: (group: TaskGroup<T, R>) => V | PromiseLike<V>,
  options: TaskGroupOptions<T, R> = {},
): Promise<V> {
  const group = new Group(options);
  let value: V;
  try {
    value = await body(group);
  } catch (error) {
    return await group.leaveBy(error);
  }
  await group.join();
  return value;
}

class ParentWatcher extends Watcher {
  readonly #group: { abort(reason: unknown): void };

  constructor(group: { abort(reason: unknown): void }) {
    super();
    this.#group = group;
  }

  override onAbort(reason: unknown): void {
    this.#group.abort(reason);
  }
}
