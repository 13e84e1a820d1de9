/** As `followUntil`, for who may also have waited for long enough. */
import type { Clock, Timer, TimerTask } from "../clock/clock.ts";
import { TimeoutError } from "../errors.ts";
import type { WaitOptions } from "../policy.ts";
import { Follower } from "./follower.ts";

/** Whether who waits like this can leave before the end. */
export function mayLeave(options: WaitOptions | undefined): options is WaitOptions {
  return options?.signal !== undefined || (options?.timeoutMs ?? Infinity) < Infinity;
}

/**
 * Settles as `shared` does, or by the signal or the limit, if that comes first. Then `onLeave` is called, once and in the
 * same turn; also if signal or clock throw.
 */
export function follow<T>(
  shared: Promise<T>,
  { signal, timeoutMs = Infinity }: WaitOptions,
  clock: Clock,
  onLeave: (reason: unknown) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const follower = new TimedFollower(shared, resolve, reject, onLeave);
    if (timeoutMs < Infinity) follower.leaveAfter(timeoutMs, clock);
    if (signal !== undefined) follower.heed(signal);
  });
}

class TimedFollower<T> extends Follower<T> implements TimerTask {
  // I1  it has a timer until the caller has its answer
  #timeoutMs = 0;
  #timer: Timer | undefined;

  leaveAfter(timeoutMs: number, clock: Clock): void {
    this.#timeoutMs = timeoutMs;
    try {
      this.#timer = clock.setTimer(timeoutMs, this);
    } catch (error) {
      this.onAbort(error); // the clock is foreign code
    }
  }

  onTimer(): void {
    queueMicrotask(() => this.onAbort(new TimeoutError(this.#timeoutMs))); // an abort of the same turn wins
  }

  override end(): boolean {
    this.#timer?.cancel();
    return super.end();
  }
}
