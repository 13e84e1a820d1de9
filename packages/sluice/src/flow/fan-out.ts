/**
 * Starts a fixed set of different calls together and has all their answers by name: required ones, and optional ones
 * that the whole can do without. For one function over many items, use `mapLimit`.
 */
import type { Clock, Timer, TimerTask } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { TimeoutError } from "../errors.ts";
import { Watcher } from "../internal/abort.ts";
import { checkFunctions, checkMs, checkSignal } from "../internal/check.ts";
import { notice } from "../internal/probe.ts";
import { type BranchListener, BranchRun } from "./fan-out-branch.ts";
import type { Branches, BranchReport, BranchValues } from "./fan-out-types.ts";
import { Width } from "./fan-out-width.ts";

export interface FanOutOptions {
  /** Ends all: it rejects with `signal.reason` at once, and the branches that run have their signal aborted. */
  readonly signal?: AbortSignal | undefined;
  /**
   * The deadline for the whole: an optional branch that has not ended counts as failed then, a required one fails the
   * whole. At least 1. @default Infinity
   */
  readonly timeoutMs?: number | undefined;
  /** Runs the limits and measures the branches. @default systemClock */
  readonly clock?: Clock | undefined;
  /**
   * Told of each error that neither the outcome nor the rejection tells: of branches that ended after their answer was
   * no longer wanted, other than by the reason they were aborted with, and of optional ones when a required one failed.
   * What it throws is uncaught. @default ignored
   */
  readonly onLateError?: ((error: unknown, branch: string) => void) | undefined;
}

export type FanOutOutcome<B extends Branches> = Readonly<{
  /** What each branch gave; of an optional one that failed, its `fallback`. */
  values: BranchValues<B>;
  /** How each branch went. */
  branches: Readonly<Record<keyof B, BranchReport>>;
  /** Whether all branches succeeded. */
  complete: boolean;
  /**
   * The number of branches, times that of each fan-out this one runs in: 25 for the inner of five within five. Counted
   * where the runtime has async context; elsewhere it is the number of branches.
   */
  width: number;
  /** Calls that came of it, those of fan-outs within its branches in place of the branch. */
  calls: number;
  durationMs: number;
}>;

/**
 * Starts all branches in the turn of the call, and resolves when each has ended or reached its limit. When a required
 * branch fails, the others have their signals aborted; it rejects with that error as it is once they have ended, or
 * reached their limit or the deadline, so that no work is left behind. An abort by the caller isn't waited for.
 */
export function fanOut<B extends Branches>(branches: B, options: FanOutOptions = {}): Promise<FanOutOutcome<B>> {
  return new Promise((resolve, reject) => {
    new FanOut(branches, options, resolve, reject).start();
  });
}

class FanOut<B extends Branches> extends Watcher implements TimerTask, BranchListener {
  // I1  #open branches have been started and have no report
  // I2  once over, no timer is set, no signal is watched and no branch starts
  readonly #runs: readonly BranchRun[];
  readonly #width = new Width();
  readonly #options: FanOutOptions;
  readonly #timeoutMs: number;
  readonly #clock: Clock;
  readonly #startedAt: number;
  readonly #resolve: (outcome: FanOutOutcome<B>) => void;
  readonly #reject: (reason: unknown) => void;
  #timer: Timer | undefined;
  #open = 0;
  #isStarting = true;
  #isOver = false;
  #failure: { readonly reason: unknown } | undefined;

  constructor(
    branches: B,
    options: FanOutOptions,
    resolve: (outcome: FanOutOutcome<B>) => void,
    reject: (reason: unknown) => void,
  ) {
    super();
    checkSignal(options.signal);
    checkFunctions(options, ["onLateError"]);
    this.#timeoutMs = checkMs("timeoutMs", options.timeoutMs ?? Infinity, { min: 1, infinity: true });
    this.#clock = options.clock ?? systemClock;
    this.#options = options;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#startedAt = this.#clock.now();
    this.#runs = Object.entries(branches).map(([name, branch]) => new BranchRun(name, branch, this.#clock, this));
  }

  start(): void {
    const { signal } = this.#options;
    signal?.throwIfAborted();
    try {
      if (this.#timeoutMs < Infinity) this.#timer = this.#clock.setTimer(this.#timeoutMs, this);
      for (const run of this.#runs) run.arm();
      if (signal !== undefined) this.watch(signal);
    } catch (error) {
      this.#disarm(); // clock and signal are foreign code
      throw error;
    }
    this.#width.open(this.#runs.length);
    for (const run of this.#runs) {
      if (this.#isOver || this.#failure !== undefined) break;
      this.#open += 1;
      run.start(this.#width);
    }
    this.#isStarting = false;
    this.#endIfDone();
  }

  onTimer(): void {
    queueMicrotask(() => {
      if (this.#isOver) return; // an abort of the same turn wins
      for (const run of this.#runs) run.expire(new TimeoutError(this.#timeoutMs));
    });
  }

  override onAbort(reason: unknown): void {
    this.#end();
    this.#reject(this.#failure === undefined ? reason : this.#failure.reason);
    this.#tellUntold();
    for (const run of this.#runs) run.abandon(reason);
  }

  onReport(run: BranchRun, report: BranchReport): void {
    this.#open -= 1;
    if (report.status !== "succeeded" && this.#failure === undefined && !run.isOptional) {
      this.#failure = { reason: report.error };
      for (const other of this.#runs) other.abort(report.error);
    }
    this.#endIfDone();
  }

  onLateError(error: unknown, branch: string): void {
    const { onLateError } = this.#options;
    if (onLateError === undefined) notice?.("failed", { kind: "fan-out" }, error);
    else queueMicrotask(() => onLateError(error, branch));
  }

  #endIfDone(): void {
    if (this.#isOver || this.#isStarting || this.#open > 0) return;
    this.#end();
    if (this.#failure === undefined) return this.#resolve(this.#outcome());
    this.#reject(this.#failure.reason);
    this.#tellUntold();
  }

  /** There is no outcome to tell them. */
  #tellUntold(): void {
    for (const { name, report } of this.#runs) {
      const isNews = report?.status === "failed" && report.error !== this.#failure?.reason;
      if (isNews) this.onLateError(report.error, name);
    }
  }

  #outcome(): FanOutOutcome<B> {
    const reports = this.#runs.map((run) => [run.name, run.report] as const);
    return {
      values: Object.fromEntries(this.#runs.map((run) => [run.name, run.value])) as BranchValues<B>,
      branches: Object.fromEntries(reports) as Record<keyof B, BranchReport>,
      complete: reports.every(([, report]) => report?.status === "succeeded"),
      width: this.#width.product,
      calls: this.#width.calls,
      durationMs: this.#clock.now() - this.#startedAt,
    };
  }

  #end(): void {
    this.#isOver = true;
    this.#disarm();
  }

  #disarm(): void {
    this.#timer?.cancel();
    for (const run of this.#runs) run.disarm();
    this.unwatch();
  }
}
