/**
 * Saves outcomes, all those of one turn and all that came while the store was busy in one `settle`, and tries again
 * while the store fails. What can't be saved is not lost: its lease lapses, and the job runs again.
 */
import { backoffMs, type Clock, type Timer, type TimerTask } from "sluice";
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

/** Between two tries when the store fails. */
export const STORE_RETRY = { baseMs: 100, maxMs: 5_000 };

export class Settler implements TimerTask {
  // I1  at most one batch is at the store; #atStore has those of it that are not saved
  // I2  while #waiting is not empty, a batch is at the store, #timer runs, or #send is queued for this turn
  readonly #options: SettlerOptions;
  #waiting: Unsettled[] = [];
  readonly #atStore = new Set<Unsettled>();
  #isQueued = false;
  #isSending = false;
  #failures = 0;
  #timer: Timer | undefined;
  #isClosed = false;

  constructor(options: SettlerOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#waiting.length + this.#atStore.size;
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
    if (this.#isSending || this.#waiting.length === 0) return;
    this.#isQueued = true;
    queueMicrotask(() => void this.#send());
  }

  async #send(): Promise<void> {
    const batch = this.#waiting;
    this.#isQueued = false;
    this.#isSending = true;
    this.#waiting = [];
    for (const entry of batch) this.#atStore.add(entry);
    await this.#settle(batch);
    this.#isSending = false;
    if (this.#isClosed) return;
    if (this.#atStore.size === 0) {
      this.#failures = 0;
      this.#queue();
      return;
    }
    const { clock, random } = this.#options;
    this.#waiting = [...this.#atStore, ...this.#waiting];
    this.#atStore.clear();
    this.#failures += 1;
    this.#timer = clock.setTimer(backoffMs(this.#failures, STORE_RETRY, random), this);
  }

  async #settle(batch: readonly Unsettled[]): Promise<void> {
    const { store, onSettled, onError } = this.#options;
    let answers: readonly boolean[];
    try {
      answers = await store.settle(batch.map(({ settlement }) => settlement));
    } catch (error) {
      onError(error);
      if (error instanceof RangeError || error instanceof TypeError) await this.#settleOdd(batch);
      return;
    }
    if (this.#isClosed) return;
    for (const [index, entry] of batch.entries()) {
      this.#atStore.delete(entry);
      onSettled(entry, answers[index] === true);
    }
  }

  /** One of the batch is not to the store's taste, and must not sink the others. */
  async #settleOdd(batch: readonly Unsettled[]): Promise<void> {
    const [only] = batch;
    if (batch.length > 1) await Promise.all(batch.map((entry) => this.#settle([entry])));
    else if (only?.settlement.kind === "complete" && only.settlement.result !== undefined) {
      // The work is done, so that it must not be repeated for the sake of a result that can't be kept.
      const bare: Unsettled = { run: only.run, settlement: { ...only.settlement, result: undefined } };
      this.#atStore.delete(only);
      this.#atStore.add(bare);
      await this.#settle([bare]);
    }
  }
}
