/**
 * Where batches wait for their window to end, and for others to end: for what comes over time and must not flood what it
 * goes to, such as log lines. Batchers may share one. Loads that come in one turn need none.
 */
import type { Clock, Timer, TimerTask } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { ClosedError, QueueFullError } from "../errors.ts";
import { checkInteger, checkMs, checkSignal } from "../internal/check.ts";
import { type NameOptions, register } from "../internal/names.ts";
import { notice } from "../internal/probe.ts";
import type { Batched, BatchSchedule, LoadOptions } from "./batch-options.ts";
import { followUntil } from "./follower.ts";
import { turnEnd } from "./turn-end.ts";

export interface BatchLineOptions extends NameOptions {
  /** How long a batch waits for more keys, from its first on; less if it is full. At least 0. @default 0 */
  readonly windowMs?: number | undefined;
  /** Calls under way at a time; meanwhile, what waits goes on filling. An integer >= 1. @default Infinity */
  readonly maxParallel?: number | undefined;
  /** Batches that may wait, open ones too; a key that needs another gets `QueueFullError`. @default Infinity */
  readonly maxWaiting?: number | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

export type BatchLineStats = Readonly<{
  /** Batches that wait, the keys in them, and how long the oldest has waited. */
  waiting: number;
  waitingKeys: number;
  oldestWaitMs: number;
  /** Calls that go on. */
  running: number;
  /** Batches for which there was no place. */
  rejected: number;
  closed: boolean;
}>;

export class BatchLine implements BatchSchedule {
  // I1  a batch has a place in #places until it is sent or nobody waits, and is in #running while its call goes on
  // I2  it is sent at the end of a turn, when its window has ended, in the order of coming
  readonly name: string | undefined;
  readonly #windowMs: number;
  readonly #maxParallel: number;
  readonly #maxWaiting: number;
  readonly #clock: Clock;
  readonly #places = new Map<Batched, Place>();
  readonly #running = new Set<Batched>();
  readonly #ask: () => void = turnEnd(() => this.#serve());
  #report: Promise<unknown[]> | undefined;
  #rejected = 0;

  constructor(options: BatchLineOptions = {}) {
    const { windowMs = 0, maxParallel = Infinity, maxWaiting = Infinity, clock = systemClock } = options;
    this.#windowMs = checkMs("windowMs", windowMs, { min: 0 });
    this.#maxParallel = checkInteger("maxParallel", maxParallel, { min: 1, infinity: true });
    this.#maxWaiting = checkInteger("maxWaiting", maxWaiting, { min: 1, infinity: true });
    this.#clock = clock;
    this.name = options.name;
    register("batch-line", options, this);
  }

  stats(): BatchLineStats {
    let waitingKeys = 0;
    for (const { size } of this.#places.keys()) waitingKeys += size;
    const [oldest] = this.#places.values();
    return {
      waiting: this.#places.size,
      waitingKeys,
      oldestWaitMs: oldest === undefined ? 0 : this.#clock.now() - oldest.since,
      running: this.#running.size,
      rejected: this.#rejected,
      closed: this.#report !== undefined,
    };
  }

  /** Ends all windows: what waits is sent at the end of this turn, as far as `maxParallel` allows. */
  flush(): void {
    for (const place of this.#places.values()) place.end();
    this.#ask();
  }

  /**
   * Takes no more batches, and sends those that wait. Resolves when all have ended, with the keys of those loads that
   * failed. By an abort it stops waiting: what has no answer yet rejects with `ClosedError`, and another `close` tells
   * its keys.
   */
  close(options: LoadOptions = {}): Promise<unknown[]> {
    try {
      const { signal } = options;
      checkSignal(signal);
      signal?.throwIfAborted();
      if (this.#report === undefined) notice?.("closed", this);
      this.#report ??= this.#flushAll();
      return signal === undefined ? this.#report : followUntil(this.#report, signal, () => this.#failAll());
    } catch (error) {
      return Promise.reject(error);
    }
  }

  add(batch: Batched): void {
    if (this.#report !== undefined) throw new ClosedError("batch line");
    if (this.#places.size >= this.#maxWaiting) {
      this.#rejected += 1;
      notice?.("rejected", this);
      throw new QueueFullError(this.#maxWaiting);
    }
    const place = new Place(this.#clock.now(), this.#ask);
    if (this.#windowMs === 0) this.#ask();
    else place.begin(this.#windowMs, this.#clock);
    this.#places.set(batch, place);
  }

  full(batch: Batched): void {
    this.#places.get(batch)?.end();
    if (batch.size === 0) this.#places.delete(batch);
    this.#ask();
  }

  #serve(): void {
    for (const [batch, place] of Array.from(this.#places)) {
      if (this.#running.size >= this.#maxParallel) return;
      if (!place.isOpen) void this.#run(batch);
    }
  }

  async #run(batch: Batched): Promise<void> {
    this.#places.delete(batch);
    this.#running.add(batch);
    await batch.send();
    this.#running.delete(batch);
    this.#ask();
  }

  async #flushAll(): Promise<unknown[]> {
    const batches = [...this.#running, ...this.#places.keys()];
    this.flush();
    await Promise.all(batches.map(({ ended }) => ended));
    return batches.flatMap(({ failed }) => failed);
  }

  #failAll(): void {
    for (const batch of [...this.#running, ...this.#places.keys()]) batch.fail(new ClosedError("batch line"));
    this.#places.clear();
  }
}

/** A batch's place in line. */
class Place implements TimerTask {
  readonly since: number;
  readonly #onEnd: () => void;
  #timer: Timer | undefined;

  constructor(since: number, onEnd: () => void) {
    this.since = since;
    this.#onEnd = onEnd;
  }

  /** Whether its window has not ended. */
  get isOpen(): boolean {
    return this.#timer !== undefined;
  }

  begin(windowMs: number, clock: Clock): void {
    this.#timer = clock.setTimer(windowMs, this);
  }

  end(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  onTimer(): void {
    this.#timer = undefined;
    this.#onEnd();
  }
}
