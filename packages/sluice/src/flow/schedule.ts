/**
 * Runs something later, once or again and again, until it is told to stop: a run that fails ends nothing, and what was
 * missed while nothing could run is made up for as one has said. For work that must outlive the process, use jobs.
 */
import type { Timer } from "../clock/clock.ts";
import { Watcher } from "../internal/abort.ts";
import { checkFunction, checkSignal, checkWait } from "../internal/check.ts";
import { asyncDispose, dispose } from "../internal/dispose.ts";
import { register } from "../internal/names.ts";
import { grantAll, WaitList } from "../internal/wait-list.ts";
import type { WaitOptions } from "../policy.ts";
import {
  checkScheduleOptions,
  type ScheduledTask,
  type ScheduleOptions,
  type ScheduleSettings,
  type ScheduleStats,
  type ScheduleTiming,
} from "./schedule-options.ts";
import { type Occurrence, type Timetable, timetable } from "./schedule-timetable.ts";

export interface Schedule extends Disposable, AsyncDisposable {
  readonly name: string | undefined;
  /** When the next run is due, in milliseconds since the Unix epoch; undefined if none is to come, or not by itself. */
  readonly nextAt: number | undefined;
  /** No run starts any more: it was stopped, or there is none left. */
  readonly ended: boolean;
  stats(): ScheduleStats;
  /** No run starts until `resume`. What is due meanwhile counts as missed. */
  pause(): void;
  resume(): void;
  /** Resolves when it has ended and the last run has, too. It doesn't end by that. */
  drain(options?: WaitOptions): Promise<void>;
  /** Ends it, as disposal does, and resolves when the runs that go on have ended. `options` bound the wait alone. */
  stop(options?: WaitOptions): Promise<void>;
  /** Ends it, and aborts the signals of the runs that go on. @param reason as for `AbortController.abort` */
  abort(reason?: unknown): void;
}

/** Calls `task` when `timing` says, in the async context of whoever calls this. */
export function schedule(timing: ScheduleTiming, task: ScheduledTask, options: ScheduleOptions = {}): Schedule {
  checkFunction("task", task);
  checkSignal(options.signal);
  const settings = checkScheduleOptions(options);
  return new RunningSchedule(timetable(timing, settings), task, settings);
}

class RunningSchedule extends Watcher implements Schedule {
  // I1  at most one run goes on, or `maxRunning` with "allow"
  // I2  somebody is pending only while runs go on or it is paused
  // I3  once ended there is no timer, no watcher, nobody pending, and no run starts
  readonly name: string | undefined;
  readonly #timetable: Timetable;
  readonly #task: ScheduledTask;
  readonly #settings: ScheduleSettings;
  readonly #stop = new AbortController();
  readonly #drains = new WaitList<void>();
  readonly #pending: Occurrence[] = [];
  #timer: Timer | undefined;
  #wake: (() => void) | undefined;
  #running = 0;
  #started = 0;
  #failed = 0;
  #skipped = 0;
  #missed = 0;
  #paused = false;
  #ended = false;

  constructor(times: Timetable, task: ScheduledTask, settings: ScheduleSettings) {
    super();
    this.#timetable = times;
    this.#task = task;
    this.#settings = settings;
    this.name = settings.name;
    register("schedule", settings, this);
    const { signal } = settings;
    if (signal?.aborted === true) this.abort(signal.reason);
    else if (signal !== undefined) this.watch(signal);
    void this.#follow();
  }

  get nextAt(): number | undefined {
    return this.#ended || this.#paused ? undefined : this.#timetable.nextAt;
  }

  get ended(): boolean {
    return this.#ended;
  }

  stats(): ScheduleStats {
    return {
      started: this.#started,
      running: this.#running,
      pending: this.#pending.length,
      failed: this.#failed,
      skipped: this.#skipped,
      missed: this.#missed,
      paused: this.#paused,
      ended: this.#ended,
    };
  }

  pause(): void {
    this.#paused = true;
    this.#timer?.cancel();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#startPending();
    this.#wake?.(); // to look what was missed
  }

  drain(options: WaitOptions = {}): Promise<void> {
    try {
      checkWait(options);
      if (this.#ended && this.#running === 0) return Promise.resolve();
      this.#drains.refuseHaste(options);
      return this.#drains.wait(options, this.#settings.clock);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  stop(options: WaitOptions = {}): Promise<void> {
    try {
      checkWait(options);
    } catch (error) {
      return Promise.reject(error);
    }
    this.#end();
    return this.drain(options);
  }

  abort(reason?: unknown): void {
    this.#end();
    this.#stop.abort(reason);
  }

  override onAbort(reason: unknown): void {
    this.abort(reason);
  }

  [dispose](): void {
    this.#end();
  }

  async [asyncDispose](): Promise<void> {
    await this.stop();
  }

  /** An async function, and no chain of timers, since what it calls has the async context of who called `schedule`. */
  async #follow(): Promise<void> {
    const times = this.#timetable;
    try {
      while (!this.#ended && (times.nextAt !== undefined || this.#pending.length > 0)) {
        await this.#sleep();
        if (this.#ended || this.#paused) continue;
        this.#startPending();
        const { runs, missed } = times.takeDue();
        this.#missed += missed;
        const ends = runs.map((run) => this.#admit(run, runs.length > 1));
        if (!times.isSerial || runs.length === 0) continue;
        await ends[0];
        times.onEnd();
      }
    } catch (error) {
      this.#report(error); // of a calendar, or of the clock: there is no telling when the next run would be
    }
    this.#end();
  }

  #sleep(): Promise<void> {
    const { clock, background } = this.#settings;
    const { nextAt, delayMs } = this.#timetable;
    return new Promise((resolve) => {
      this.#wake = resolve;
      if (nextAt !== undefined && !this.#paused)
        this.#timer = clock.setTimer(delayMs, { onTimer: resolve }, { background });
    });
  }

  /** What has a run of its own to make up for is never left out. */
  #admit(run: Occurrence, isCatchUp: boolean): Promise<void> | undefined {
    if (this.#ended) return undefined; // by the run before it, as it may have been paused
    if (!this.#paused && this.#running < this.#limit && this.#pending.length === 0) return this.#start(run);
    const isQueued = isCatchUp || (this.#settings.overlap === "queue" && this.#pending.length === 0);
    if (isQueued) this.#pending.push(run);
    else this.#skipped += 1;
    return undefined;
  }

  get #limit(): number {
    return this.#settings.overlap === "allow" ? this.#settings.maxRunning : 1;
  }

  #startPending(): void {
    while (!this.#paused && this.#running < this.#limit) {
      const run = this.#pending.shift();
      if (run === undefined) return;
      void this.#start(run);
    }
  }

  #start({ dueAt, missed }: Occurrence): Promise<void> {
    const { signal } = this.#stop;
    this.#running += 1;
    this.#started += 1;
    const run = new Promise((resolve) => resolve(this.#task({ signal, dueAt, missed })));
    const onFailed = (error: unknown): void => {
      this.#onRunEnd();
      if (signal.aborted && error === signal.reason) return; // as it was asked to
      this.#failed += 1;
      this.#report(error);
    };
    return run.then(() => this.#onRunEnd(), onFailed);
  }

  #onRunEnd(): void {
    this.#running -= 1;
    this.#startPending();
    if (this.#timetable.nextAt === undefined && this.#pending.length === 0) this.#wake?.(); // it was the last
    this.#settle();
  }

  #end(): void {
    this.#ended = true;
    this.#pending.length = 0;
    this.#timer?.cancel();
    this.unwatch();
    this.#settle();
  }

  #settle(): void {
    if (this.#ended && this.#running === 0) grantAll(this.#drains);
  }

  #report(reason: unknown): void {
    try {
      if (this.#settings.onError === undefined) throw reason;
      this.#settings.onError(reason);
    } catch (unheard) {
      void Promise.reject(unheard);
    }
  }
}
