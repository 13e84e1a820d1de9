/**
 * Runs the jobs of one queue: claims as many as it has free slots, keeps their leases alive, and saves their outcomes.
 * It sleeps until the store says that there is something to do, and looks by itself now and then.
 *
 * A failing store stops nothing for good: claims, outcomes, heartbeats and sweeps are tried again, and a job whose
 * outcome can't be saved runs again once its lease has lapsed.
 */
import { backoffMs, ClosedError, type StopContext, type Timer, type WaitOptions } from "sluice";
import { register } from "sluice/internal";
import { Attempts, releaseOf, type Handler } from "./attempts.ts";
import { Hooks } from "./hooks.ts";
import type { Json } from "./job.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import { LeaseLostError } from "./outcome.ts";
import { type Rest, RestWaits } from "./rest-waits.ts";
import { Run } from "./run.ts";
import { Settler, STORE_RETRY, type Unsettled } from "./settler.ts";
import type { Settlement, Store } from "./store.ts";
import { Sweeper } from "./sweeper.ts";
import { TurnGuard } from "./turn-guard.ts";
import { checkName } from "./validate.ts";
import { resolveStopOptions, resolveWorkerOptions } from "./worker-options.ts";
import type { ResolvedWorkerOptions, StopOptions, StopReport, WorkerOptions, WorkerStats } from "./worker-options.ts";

export class Worker<P extends Json = Json> implements AsyncDisposable {
  // I1  what runs is at most `concurrency`, and with what has ended and is not saved at most twice that
  // I2  one claim is under way at a time, and asks for no more than can be started at once
  // I3  a running worker with a free slot is looking for jobs, or will be woken: by the store or by #wakeTimer
  // I4  a run is in #leases from its claim until its outcome is saved or nobody's business any more
  readonly queue: string;
  readonly #store: Store;
  readonly #options: ResolvedWorkerOptions;
  readonly #hooks: Hooks;
  readonly #attempts: Attempts;
  readonly #settler: Settler;
  readonly #leases: LeaseKeeper;
  readonly #sweeper: Sweeper;
  readonly #guard: TurnGuard;
  readonly #waits: RestWaits;
  readonly #counts = { complete: 0, fail: 0, snooze: 0, release: 0, self: 0, lost: 0 };
  #state: WorkerStats["state"] = "new";
  #stopListening: (() => void) | undefined;

  #mayHaveMore = false;
  #isLooking = false;
  #isQueued = false;
  #claimFailures = 0;
  #hasSweptForDue = false;
  /** As the store said when nothing could be claimed. */
  #isDrained = false;
  #wakeTimer: Timer | undefined;

  #stopping: Promise<StopReport> | undefined;
  /** Of what happens from `stop` on. */
  #report: { finished: number; aborted: number; readonly released: string[]; readonly lost: string[] } | undefined;
  #isHasty = false;
  #onChange: (() => void) | undefined;

  constructor(store: Store, queue: string, handler: Handler<P>, options: WorkerOptions = {}) {
    this.queue = checkName("queue", queue);
    if (typeof handler !== "function") throw new TypeError(`handler must be a function, got ${typeof handler}`);
    this.#store = store;
    this.#options = resolveWorkerOptions(options);
    this.#hooks = new Hooks(queue, this.#options);
    this.#attempts = new Attempts({
      ...this.#options,
      handler: handler as unknown as Handler, // what the jobs of this queue carry, only the user knows
      onEnd: (run, settlement) => this.#onEnd(run, settlement),
      onError: (error, run) => this.#hooks.error(error, "run", run.id),
    });
    this.#settler = new Settler({
      ...this.#options,
      store,
      onSettled: (entry, accepted) => this.#onSettled(entry, accepted),
      onError: (error) => this.#hooks.error(error, "settle"),
    });
    this.#leases = new LeaseKeeper({
      ...this.#options,
      store,
      onError: (error) => this.#hooks.error(error, "heartbeat"),
    });
    this.#sweeper = new Sweeper({
      ...this.#options,
      store,
      queue,
      beat: () => this.#leases.beat(),
      onSwept: ({ ready, ended }) => {
        this.#hooks.ended(ended);
        if (ready > 0) this.#wake();
      },
      onError: (error, during) => this.#hooks.error(error, during),
    });
    this.#guard = new TurnGuard(this.#options.clock);
    this.#waits = new RestWaits(this.#options.clock, () => this.#rests());
    register("worker", { name: options.name }, this);
  }

  stats(): WorkerStats {
    const { complete, fail, snooze, release, self, lost } = this.#counts;
    return {
      state: this.#state,
      running: this.#attempts.size,
      unsettled: this.#settler.size,
      completed: complete,
      failed: fail,
      snoozed: snooze,
      released: release,
      selfSettled: self,
      lost,
    };
  }

  /** Does nothing when it has been started already; a worker that was stopped can't be started again. */
  start(): void {
    if (this.#state === "stopping" || this.#state === "stopped") throw new ClosedError("worker");
    if (this.#state === "running") return;
    this.#stopListening = this.#store.onReady((queue) => {
      if (queue === this.queue) this.#wake();
    });
    this.#state = "running";
    this.#sweeper.start();
    this.#wake();
  }

  /**
   * Looks, and resolves as soon as there is nothing to do: nothing can be claimed, nothing runs here, and what has ended
   * is saved. It doesn't wait for what is scheduled, retries included. Of a worker that isn't started, once it is;
   * `ClosedError` when it is stopped. With a `timeoutMs` of 0 it doesn't look, and goes by what it knows.
   */
  idle(options: WaitOptions = {}): Promise<void> {
    return this.#wait("idle", options);
  }

  /**
   * Looks, and resolves as soon as the queue is empty: no job in it is scheduled, ready or running, here or anywhere, and
   * what has ended here is saved; dead and quarantined ones stay where they are. For tests, and for a run that ends with
   * its work. It turns nobody away: who adds jobs can put it off. What others end it finds within `pollMs`. Otherwise as
   * `idle`.
   */
  drain(options: WaitOptions = {}): Promise<void> {
    return this.#wait("drained", options);
  }

  /**
   * Ends in order: claims no more; lets what runs end by itself; aborts what is left; gives its jobs back. Resolves when
   * all is saved, and at the latest after `drainMs` and `abortMs`, even if store and handlers never answer. Rejects for
   * bad options alone, and then goes on. Further calls get the promise of the first; their `signal` counts too.
   */
  stop(options: StopOptions = {}): Promise<StopReport> {
    try {
      const { drainMs, abortMs } = resolveStopOptions(options);
      const { signal } = options;
      signal?.addEventListener("abort", this.#hasten, { once: true }); // first, since it is foreign code
      const stopping = (this.#stopping ??= this.#stop(drainMs, abortMs));
      if (signal?.aborted === true) this.#hasten();
      void stopping.then(() => signal?.removeEventListener("abort", this.#hasten));
      return stopping;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** For `shutdown().add(name, worker)`: `stop` within the time that its phase has. */
  stopWithin({ signal, timeoutMs }: StopContext): Promise<StopReport> {
    return this.stop({ signal, timeoutMs });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #wait(rest: "idle" | "drained", options: WaitOptions): Promise<void> {
    const waiting = this.#waits.wait(rest, options);
    if (this.#waits.size > 0) this.#wake();
    return waiting;
  }

  #wake(): void {
    this.#isDrained = false;
    this.#mayHaveMore = true;
    this.#queueLook();
  }

  /** At the end of this turn: those that end together save their outcomes first, and are replaced by one claim. */
  #queueLook(): void {
    // Without the last, a worker that is full would look again and again in microtasks, and nothing else would run.
    if (this.#isQueued || this.#isLooking || !this.#mayHaveMore || this.#free() <= 0) return;
    this.#isQueued = true;
    queueMicrotask(() => {
      this.#isQueued = false;
      void this.#look();
    });
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      for (let free = this.#free(); this.#mayHaveMore && free > 0; free = this.#free()) {
        this.#mayHaveMore = false;
        const claimed = await this.#claim(free);
        this.#claimFailures = 0;
        if (claimed > 0) this.#hasSweptForDue = false;
        if (claimed === free) this.#mayHaveMore = true;
        else if (!this.#mayHaveMore) await this.#rest();
        if (this.#mayHaveMore && this.#guard.isOverdue) await this.#guard.turned();
      }
    } catch (error) {
      this.#hooks.error(error, "claim");
      this.#claimFailures += 1;
      this.#wakeAfter(backoffMs(this.#claimFailures, STORE_RETRY, this.#options.random));
    } finally {
      this.#isLooking = false;
      this.#changed();
    }
  }

  #free(): number {
    if (this.#state !== "running") return 0;
    const free = this.#options.concurrency - this.#attempts.size;
    return Math.min(free, free + this.#options.concurrency - this.#settler.size); // I1
  }

  async #claim(max: number): Promise<number> {
    const { leaseMs, name, clock } = this.#options;
    const sentAt = clock.now();
    const jobs = await this.#store.claim({ queue: this.queue, max, leaseMs, worker: name });
    if (jobs.length > 0) this.#isDrained = false;
    const now = clock.now();
    const runs = jobs.map((job) => new Run(job, now, sentAt + leaseMs));
    if (this.#state === "stopped") {
      if (runs.length > 0) await this.#store.settle(runs.map(releaseOf)); // nobody waits for it any more
    } else {
      for (const run of runs) {
        this.#leases.add(run);
        if (this.#state === "running") this.#attempts.start(run);
        else this.#settler.push(run, releaseOf(run)); // too late to be started
      }
    }
    return jobs.length;
  }

  /** Nothing can be claimed now. When will there be? */
  async #rest(): Promise<void> {
    const { pollMs } = this.#options;
    const [nextAt, now] = await Promise.all([this.#store.nextAt(this.queue), this.#store.now()]);
    const isDue = nextAt !== undefined && nextAt <= now;
    this.#isDrained = nextAt === undefined && !this.#mayHaveMore;
    this.#wakeAfter(nextAt === undefined || isDue ? pollMs : Math.min(pollMs, nextAt - now));
    if (isDue && !this.#hasSweptForDue) {
      // What is due and can't be claimed is a lapsed lease, or has just become due. If it still is after a sweep, somebody
      // else was faster.
      this.#hasSweptForDue = true;
      void this.#sweeper.sweep().then(() => this.#wake());
    } else this.#hasSweptForDue = false;
  }

  #wakeAfter(delayMs: number): void {
    this.#wakeTimer?.cancel();
    if (this.#state !== "running") return;
    this.#wakeTimer = this.#options.clock.setTimer(delayMs, { onTimer: () => this.#wake() }, { background: true });
  }

  #onEnd(run: Run, settlement: Settlement | undefined): void {
    if (settlement !== undefined && !run.isLost) this.#settler.push(run, settlement);
    else {
      this.#leases.delete(run);
      if (settlement !== undefined) this.#lose(run);
      else {
        this.#counts.self += 1;
        this.#finished();
      }
    }
    this.#ended();
  }

  #onSettled({ run, settlement }: Unsettled, accepted: boolean): void {
    const { kind } = settlement;
    this.#leases.delete(run);
    if (!accepted) this.#lose(run);
    else {
      this.#counts[kind] += 1;
      if (kind === "release") this.#report?.released.push(run.id);
      else this.#finished();
      if (settlement.kind === "fail") this.#hooks.failed(run, settlement);
    }
    this.#ended();
  }

  #finished(): void {
    if (this.#report !== undefined) this.#report.finished += 1;
  }

  #lose(run: Run): void {
    this.#counts.lost += 1;
    this.#report?.lost.push(run.id);
    this.#hooks.error(new LeaseLostError(run.id), "settle", run.id);
  }

  /** An attempt is over. */
  #ended(): void {
    const isLast = this.#attempts.size + this.#settler.size === 0;
    if (isLast && this.#waits.wantsDrained) this.#mayHaveMore = true; // only the store knows if the queue is empty
    this.#changed();
  }

  #changed(): void {
    this.#queueLook();
    this.#onChange?.();
    this.#waits.tell();
  }

  #rests(): Rest {
    const isBusy = this.#attempts.size + this.#settler.size > 0 || this.#isLooking || this.#mayHaveMore;
    if (isBusy || this.#claimFailures > 0 || this.#state !== "running") return "busy";
    return this.#isDrained ? "drained" : "idle";
  }

  async #stop(drainMs: number, abortMs: number): Promise<StopReport> {
    const wasRunning = this.#state === "running";
    this.#state = "stopping";
    this.#waits.close();
    this.#stopListening?.();
    this.#wakeTimer?.cancel();
    this.#sweeper.close();
    const report = (this.#report = { finished: 0, aborted: 0, released: [] as string[], lost: [] as string[] });
    const isIdle = (): boolean => this.#attempts.size === 0 && this.#settler.size === 0 && !this.#isLooking;
    if (wasRunning) {
      const giveBackMs = abortMs / 5;
      await this.#until(() => this.#isHasty || isIdle(), drainMs);
      this.#abort();
      await this.#until(() => this.#isHasty || isIdle(), abortMs - giveBackMs);
      this.#giveBack();
      await this.#until(isIdle, giveBackMs);
    }
    this.#state = "stopped";
    this.#report = undefined;
    report.lost.push(...this.#settler.close().map(({ run }) => run.id));
    this.#leases.close();
    this.#attempts.close();
    this.#guard.close();
    return report;
  }

  /** At once, so that what is given back is on its way before whoever asked for haste closes the store. */
  readonly #hasten = (): void => {
    if (this.#report === undefined) return;
    this.#isHasty = true;
    this.#abort();
    this.#giveBack();
    this.#onChange?.();
  };

  #abort(): void {
    this.#settler.hurry();
    const aborted = this.#attempts.abort(new ClosedError("worker"));
    if (this.#report !== undefined) this.#report.aborted += aborted;
  }

  #giveBack(): void {
    this.#attempts.release();
    this.#settler.hurry();
  }

  /** Resolves when it is done, or after `ms`. */
  #until(isDone: () => boolean, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        timer.cancel();
        this.#onChange = undefined;
        resolve();
      };
      const timer = this.#options.clock.setTimer(ms, { onTimer: end });
      this.#onChange = () => {
        if (isDone()) end();
      };
      this.#onChange();
    });
  }
}
