/**
 * Saves outcomes, all those of one turn and all that came while the store was busy in one `settle`, and tries again
 * while the store fails. What can't be saved is not lost: its lease lapses, and the job runs again.
 */
import type { Clock, Timer, TimerTask } from "sluice";
import { backoffMs } from "./backoff.ts";
import type { Run } from "./run.ts";
import type { Settlement, Store } from "./store.ts";

export interface SettlerOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: () => number;
  /** The store has answered: whether the outcome counts. */
  readonly onSettled: (entry: Unsettled, accepted: boolean) => void;
  readonly onError: (error: unknown) => void;
}

export interface Unsettled {
  readonly run: Run;
  readonly settlement: Settlement;
}

const RETRY = { baseMs: 100, maxMs: 5_000 };

export class Settler implements TimerTask {
  // I1  at most one batch is at the store
  // I2  while #waiting is not empty, a batch is at the store, #timer runs, or #send is queued for this turn
  readonly #options: SettlerOptions;
  #waiting: Unsettled[] = [];
  #atStore: readonly Unsettled[] = [];
  #isQueued = false;
  #failures = 0;
  #timer: Timer | undefined;
  #isClosed = false;

  constructor(options: SettlerOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#waiting.length + this.#atStore.length;
  }

  push(run: Run, settlement: Settlement): void {
    this.#waiting.push({ run, settlement });
    this.#queue();
  }

  /** Doesn't wait for the end of a pause after a failure. */
  hurry(): void {
    this.onTimer();
  }

  onTimer(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#queue();
  }

  /** Gives up; what was not saved by now. */
  close(): Unsettled[] {
    this.#isClosed = true;
    this.#timer?.cancel();
    return [...this.#atStore, ...this.#waiting];
  }

  /** At the end of this turn, so that those who end together are saved together. */
  #queue(): void {
    if (this.#isQueued || this.#isClosed || this.#timer !== undefined) return;
    if (this.#waiting.length === 0 || this.#atStore.length > 0) return;
    this.#isQueued = true;
    queueMicrotask(() => void this.#send());
  }

  async #send(): Promise<void> {
    this.#isQueued = false;
    this.#atStore = this.#waiting;
    this.#waiting = [];
    const failed = await this.#settle(this.#atStore);
    this.#atStore = [];
    if (this.#isClosed) return;
    if (failed.length === 0) {
      this.#failures = 0;
      return this.#queue();
    }
    const { clock, random } = this.#options;
    this.#waiting = [...failed, ...this.#waiting];
    this.#failures += 1;
    this.#timer = clock.setTimer(backoffMs(this.#failures, RETRY, random), this);
  }

  /** Those that are still to be saved. */
  async #settle(batch: readonly Unsettled[]): Promise<readonly Unsettled[]> {
    const { store, onSettled, onError } = this.#options;
    try {
      const answers = await store.settle(batch.map(({ settlement }) => settlement));
      if (!this.#isClosed) batch.forEach((entry, index) => onSettled(entry, answers[index] === true));
      return [];
    } catch (error) {
      onError(error);
      if (this.#isClosed || !(error instanceof RangeError || error instanceof TypeError)) return batch;
      return this.#settleOdd(batch);
    }
  }

  /** One of the batch is not to the store's taste, and must not sink the others. */
  async #settleOdd(batch: readonly Unsettled[]): Promise<readonly Unsettled[]> {
    const [only] = batch;
    if (batch.length > 1) return (await Promise.all(batch.map((entry) => this.#settle([entry])))).flat();
    if (only?.settlement.kind !== "complete" || only.settlement.result === undefined) return batch;
    // The work is done, so that it must not be repeated for the sake of a result that can't be kept.
    return this.#settle([{ run: only.run, settlement: { ...only.settlement, result: undefined } }]);
  }
}
