/** Calls what has got its slots, and gives these back once it has ended. */
import type { Clock } from "../../clock/clock.ts";
import { whenSettled } from "../../internal/when-settled.ts";
import type { RunContext, Task } from "../../policy.ts";
import { Request, type Work } from "./request.ts";
import { Run } from "./run.ts";
import type { SelfWaits } from "./self-waits.ts";
import { limitTime } from "./time-limit.ts";

/** What a wait is granted: a plain function, or a run where there is more to it. */
export type Granted = Task<unknown> | Run;

export class Runner {
  // I1  `onFree` is called once for each call, when what it returned has settled or it is abandoned
  /** Calls that gave their slots back, calls that outlived `maxRunMs`, and those of them that run on without a slot. */
  completed = 0;
  overdue = 0;
  abandoned = 0;
  readonly #clock: Clock;
  readonly #selfWaits: SelfWaits | undefined;
  readonly #onFree: (weight: number) => void;
  readonly #stop = new AbortController();
  readonly #context: RunContext = Object.freeze({ signal: this.#stop.signal });
  #isStopped = false;

  constructor(clock: Clock, selfWaits: SelfWaits | undefined, onFree: (weight: number) => void) {
    this.#clock = clock;
    this.#selfWaits = selfWaits;
    this.#onFree = onFree;
  }

  /** Calls nothing any more, and aborts the signals of what runs. Returns the reason. */
  stop(reason: unknown): unknown {
    this.#isStopped = true;
    this.#stop.abort(reason);
    return this.#stop.signal.reason;
  }

  /** In the turn of the caller. */
  start(work: Work, caller: AbortSignal | undefined, weight: number): Promise<unknown> {
    const granted = this.toGrant(work, caller, weight);
    if (!(granted instanceof Run)) return this.#startPlain(granted);
    return granted.isWatched && this.#selfWaits !== undefined
      ? this.#selfWaits.within(granted, this.#startRun)
      : this.#startRun(granted);
  }

  /** Of the limiter itself. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  toGrant(work: Work, caller: AbortSignal | undefined, weight: number): Granted {
    const isWatched = this.#selfWaits?.isCurious() === true;
    if (!isWatched && caller === undefined && weight === 1 && !(work instanceof Request)) return work;
    return new Run(work, caller, this.#stop.signal, weight, isWatched);
  }

  /** For a reaction to the grant. One function for all: a closure takes 112 B in each call that waits. */
  readonly startGranted = (granted: Granted): Promise<unknown> => {
    if (!(granted instanceof Run)) return this.#startPlain(granted);
    if (granted.isWatched) this.#selfWaits?.enter(granted);
    return this.#startRun(granted);
  };

  /** A call with `weight` slots has ended. */
  free(weight: number): void {
    this.completed += 1;
    this.#onFree(weight);
  }

  #startPlain(fn: Task<unknown>): Promise<unknown> {
    try {
      if (this.#isStopped) this.#stop.signal.throwIfAborted(); // since the grant
      return whenSettled(fn(this.#context), this.#succeed, this.#fail);
    } catch (error) {
      this.free(1);
      return Promise.reject(error);
    }
  }

  readonly #startRun = (run: Run): Promise<unknown> => {
    try {
      run.throwIfAborted(); // since the grant
      const { request } = run;
      if (request === undefined || request.maxRunMs === Infinity) return this.#call(run);
      const call = (): Promise<unknown> => this.#call(run);
      return limitTime(request.maxRunMs, this.#clock, call, (error) => this.#onOverdue(run, request, error));
    } catch (error) {
      this.#end(run);
      return Promise.reject(error);
    }
  };

  #call(run: Run): Promise<unknown> {
    return whenSettled(
      run.task(run),
      (value) => {
        this.#end(run);
        return value;
      },
      (reason) => {
        this.#end(run);
        throw reason;
      },
    );
  }

  #onOverdue(run: Run, { releasesSlot }: Request, error: Error): void {
    this.overdue += 1;
    run.abort(error);
    if (!releasesSlot) return;
    this.abandoned += 1;
    this.#end(run);
  }

  /** Once more for what was abandoned. */
  #end(run: Run): void {
    if (run.isOver) {
      this.abandoned -= 1;
      return;
    }
    this.#selfWaits?.ended(run);
    run.end();
    this.free(run.weight);
  }

  readonly #succeed = (value: unknown): unknown => {
    this.free(1);
    return value;
  };

  readonly #fail = (reason: unknown): never => {
    this.free(1);
    throw reason;
  };
}
