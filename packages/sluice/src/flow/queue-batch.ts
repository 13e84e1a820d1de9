import type { Clock, Timer, TimerTask } from "../clock/clock.ts";
import { asPlainPromise, Wait } from "../internal/wait.ts";
import type { QueueCore } from "./queue-core.ts";

/** Adds to `batch` what comes within `maxWaitMs`, until it has `max`, `signal` aborts or the queue ends. */
export async function waitForMore<T>(
  core: QueueCore<T, never>,
  batch: T[],
  max: number,
  maxWaitMs: number,
  signal: AbortSignal | undefined,
): Promise<T[]> {
  const { clock } = core;
  const until = clock.now() + maxWaitMs;
  for (let leftMs = maxWaitMs; leftMs > 0 && batch.length < max; leftMs = until - clock.now()) {
    if (signal?.aborted === true || core.isOver) break;
    const more = (await core.joinConsumers(new MoreWait<T>(clock.now(), leftMs), signal)) as T[];
    if (more.length === 0) break;
    batch.push(...more);
    core.drainTo(batch, max);
  }
  return batch;
}

/** Settles with a list of one item, or of none when there is nothing more to wait for: that is no failure. */
class MoreWait<T> extends Wait<T> implements TimerTask {
  readonly #leftMs: number;
  #timer: Timer | undefined;

  constructor(joinedAt: number, leftMs: number) {
    super(joinedAt);
    this.#leftMs = leftMs;
  }

  override grant(item: T): void {
    super.grant([item] as T);
  }

  override reject(reason: unknown): void {
    const list = this.lane?.list;
    if (list === undefined) return;
    list.remove(this);
    void list.onLeave?.(undefined, reason);
    super.grant([] as T);
  }

  override onAbort(reason: unknown): void {
    this.reject(reason);
  }

  override arm(signal: AbortSignal | undefined, clock: Clock): void {
    if (this.#leftMs < Infinity) this.#timer = clock.setTimer(this.#leftMs, this);
    super.arm(signal, clock);
  }

  override disarm(): void {
    super.disarm();
    this.#timer?.cancel();
  }

  onTimer(): void {
    queueMicrotask(() => this.reject(undefined)); // one microtask later: an item of the same turn is still in time
  }
}

asPlainPromise(MoreWait);
