/** Calls the handler for each claimed job, holds it to its time limit, and says how each attempt is to be settled. */
import { backoffMs, TimeoutError, type Clock, type Timer, type TimerTask } from "sluice";
import type { Claim, ClaimedJob, Json } from "./job.ts";
import { toJson } from "./json.ts";
import { describeError, SETTLED, Snooze, type Settled } from "./outcome.ts";
import type { JobContext, Run } from "./run.ts";
import type { Settlement } from "./store.ts";

/**
 * What returns has succeeded, what throws is tried again with back-off; `snooze(…)`, `SETTLED` and an
 * `UnrecoverableError` say otherwise.
 */
export type Handler<P extends Json = Json> = (job: Job<P>, context: JobContext) => Result | PromiseLike<Result>;

export interface Job<P extends Json = Json> extends ClaimedJob {
  readonly payload: P;
}

// oxlint-disable-next-line typescript/no-invalid-void-type -- a handler may have nothing to say
type Result = Json | undefined | void | Snooze | Settled;

export interface AttemptsOptions {
  readonly handler: Handler;
  readonly jobTimeoutMs: number;
  readonly retry: { readonly baseMs: number; readonly maxMs: number };
  readonly classify: (error: unknown) => "retry" | "stop";
  readonly clock: Clock;
  readonly random: () => number;
  /** Without a settlement, the handler has settled the job. */
  readonly onEnd: (run: Run, settlement: Settlement | undefined) => void;
  /** What went wrong beside the attempt's outcome. */
  readonly onError: (error: unknown, run: Run) => void;
}

export class Attempts implements TimerTask {
  // I1  a run is in #running until its outcome is known or decided without it, and ends once
  // I2  #running is in the order of starting, which is that of the time limits; the timer is set for the first or earlier
  readonly #options: AttemptsOptions;
  readonly #running = new Set<Run>();
  #timer: Timer | undefined;

  constructor(options: AttemptsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#running.size;
  }

  start(run: Run): void {
    this.#running.add(run);
    this.#watch();
    try {
      const result = this.#options.handler(run.job, run);
      if (typeof result === "object" && result !== null && "then" in result && typeof result.then === "function") {
        Promise.resolve(result as PromiseLike<Result>).then(
          (value) => this.#succeed(run, value),
          (error: unknown) => this.#fail(run, error),
        );
      } else this.#succeed(run, result as Result);
    } catch (error) {
      this.#fail(run, error);
    }
  }

  /** Aborts all that run and aren't aborted yet; their number. */
  abort(reason: unknown): number {
    const runs = [...this.#running].filter(({ isAborted }) => !isAborted);
    for (const run of runs) run.abort(reason);
    return runs.length;
  }

  /** Gives back the jobs of all that run, whatever their handlers still do. */
  release(): void {
    for (const run of this.#running) this.#end(run, releaseOf(run));
  }

  close(): void {
    this.#timer?.cancel();
  }

  onTimer(): void {
    const { clock, jobTimeoutMs } = this.#options;
    this.#timer = undefined;
    const now = clock.now();
    for (const run of this.#running) {
      if (run.startedAt + jobTimeoutMs > now) break;
      const error = new TimeoutError(jobTimeoutMs);
      const settlement = this.#settleFailure(run, error);
      run.abort(error);
      this.#end(run, settlement);
    }
    this.#watch();
  }

  #watch(): void {
    const { clock, jobTimeoutMs } = this.#options;
    const [first] = this.#running;
    if (jobTimeoutMs === Infinity || first === undefined || this.#timer !== undefined) return;
    this.#timer = clock.setTimer(first.startedAt + jobTimeoutMs - clock.now(), this, { background: true });
  }

  #succeed(run: Run, result: Result): void {
    if (run.isOver) return;
    try {
      this.#end(run, this.#settleResult(run, result));
    } catch (error) {
      this.#fail(run, error); // a proxy may throw at a mere look
    }
  }

  #settleResult(run: Run, result: Result): Settlement | undefined {
    const { id, token } = run;
    if (result === SETTLED) return undefined;
    if (!(result instanceof Snooze))
      return { id, token, kind: "complete", result: this.#checkResult(run, result as Json | undefined) };
    const { delayMs, reason } = result;
    return { id, token, kind: "snooze", delayMs, reason: reason === undefined ? reason : describeError(reason) };
  }

  /** The work is done and must not be repeated because its result is no JSON: the result is dropped, and said so. */
  #checkResult(run: Run, result: Json | undefined): Json | undefined {
    if (result === undefined) return undefined;
    try {
      toJson("result", result, Infinity);
      return result;
    } catch (error) {
      this.#options.onError(error, run);
      return undefined;
    }
  }

  #fail(run: Run, error: unknown): void {
    if (!run.isOver) this.#end(run, this.#settleFailure(run, error));
  }

  #settleFailure(run: Run, error: unknown): Settlement {
    const { id, token, attempt } = run;
    // It was told to end, so that it failed is nobody's fault: the attempt isn't charged.
    if (run.isAborted) return releaseOf(run);
    run.error = error;
    const { retry, random } = this.#options;
    const retryInMs = this.#isFinal(run, error) ? undefined : backoffMs(attempt, retry, random);
    return { id, token, kind: "fail", error: describeError(error), retryInMs };
  }

  #isFinal(run: Run, error: unknown): boolean {
    try {
      if ((error as { code?: unknown } | null | undefined)?.code === "UNRECOVERABLE") return true;
      return this.#options.classify(error) === "stop";
    } catch (reason) {
      this.#options.onError(reason, run);
      return false;
    }
  }

  #end(run: Run, settlement: Settlement | undefined): void {
    run.isOver = true;
    this.#running.delete(run);
    this.#options.onEnd(run, settlement);
  }
}

export function releaseOf({ id, token }: Claim): Settlement {
  return { id, token, kind: "release" };
}
