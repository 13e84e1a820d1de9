/** Keeps the leases of all runs of a worker alive, with one heartbeat for all of them, and notices which are lost. */
import type { Clock, Timer, TimerTask } from "sluice";
import { LeaseLostError } from "./outcome.ts";
import type { Run } from "./run.ts";
import type { Store } from "./store.ts";

export interface LeaseKeeperOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly leaseMs: number;
  readonly onError: (error: unknown) => void;
}

export class LeaseKeeper implements TimerTask {
  // I1  the timer runs exactly while there are runs
  readonly #options: LeaseKeeperOptions;
  readonly #everyMs: number;
  readonly #runs = new Set<Run>();
  #timer: Timer | undefined;
  #beating: Promise<void> | undefined;

  constructor(options: LeaseKeeperOptions) {
    this.#options = options;
    this.#everyMs = options.leaseMs / 3;
  }

  add(run: Run): void {
    this.#runs.add(run);
    this.#timer ??= this.#options.clock.setTimer(this.#everyMs, this, { background: true });
  }

  /** The timer is left to run out: a queue of short jobs would set one for each. */
  delete(run: Run): void {
    this.#runs.delete(run);
  }

  close(): void {
    this.#runs.clear();
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  onTimer(): void {
    this.#timer = undefined;
    if (this.#runs.size === 0) return;
    this.#timer = this.#options.clock.setTimer(this.#everyMs, this, { background: true });
    if (this.#beating === undefined) void this.beat();
    else this.#giveUpLapsed(); // the store has not answered for a third of the lease
  }

  /** One at a time: whoever asks during a heartbeat gets that one. Never rejects. */
  beat(): Promise<void> {
    if (this.#runs.size === 0) return Promise.resolve();
    return (this.#beating ??= this.#beat().finally(() => {
      this.#beating = undefined;
    }));
  }

  async #beat(): Promise<void> {
    const { store, clock, leaseMs, onError } = this.#options;
    const runs = [...this.#runs];
    const sentAt = clock.now();
    try {
      const answers = await store.heartbeat(
        runs.map(({ id, token }) => ({ id, token })),
        leaseMs,
      );
      for (const [index, run] of runs.entries()) {
        if (answers[index] === true) run.leaseEndsAt = sentAt + leaseMs;
        else if (this.#runs.has(run)) this.#lose(run);
      }
    } catch (error) {
      onError(error);
      this.#giveUpLapsed();
    }
  }

  #lose(run: Run): void {
    run.isLost = !run.isOver; // once over, the refusal may come from its own settlement, which was faster
    run.abort(new LeaseLostError(run.id));
  }

  /** The store can't be asked: from the end of its lease on, a job may be somebody else's. */
  #giveUpLapsed(): void {
    const now = this.#options.clock.now();
    for (const run of this.#runs) if (run.leaseEndsAt <= now) run.abort(new LeaseLostError(run.id));
  }
}
