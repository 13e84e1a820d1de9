/**
 * The engine of `debounce` and `throttle`: a function that is run less often than it is called. Calls come in bursts. A
 * burst begins with a call, and is over when none has come for `quietMs`. Where calls go on, the function is run within
 * the burst as soon as `maxWaitMs` have passed since its last run, or since the burst began.
 *
 * Time is that of the clock that only goes forward, so that setting the wall clock changes nothing. A call asks for
 * `coarseNow`: the exact time would cost several times as much as all the rest (docs/design/0020). The timer is exact.
 */
import type { Clock, Timer } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { checkFunction } from "../internal/check.ts";
import { coarseNow } from "../internal/coarse-now.ts";

export interface PacedOptions {
  /** Runs the last call too, if it was not run at once. Without it, such a call is dropped. @default true */
  readonly trailing?: boolean | undefined;
  /** Once it has aborted, nothing is run: calls do nothing, and one that waits is dropped. Listened to while one waits. */
  readonly signal?: AbortSignal | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

/** Runs what it is called with, less often than it is called: with the arguments and the `this` of the last call. */
export interface Paced<This, Args extends unknown[], R> {
  /** What the last run returned, which may be this call's; undefined before the first. */
  (this: This, ...args: Args): R | undefined;
  /** Drops the call that waits, and forgets that there were any. */
  cancel(): void;
  /** Runs the call that waits now, and returns what it returned; undefined if none waits, or within a run. */
  flush(): R | undefined;
  /** Whether a call waits to be run. */
  pending(): boolean;
}

/** All that is asked of a signal when it is handed in. */
interface Listening {
  readonly addEventListener?: unknown;
}

export function paced<This, Args extends unknown[], R>(
  fn: (this: This, ...args: Args) => R,
  quietMs: number,
  maxWaitMs: number,
  leading: boolean,
  { trailing = true, signal, clock = systemClock }: PacedOptions,
): Paced<This, Args, R> {
  // I1  a timer is set, and the signal listened to, exactly while a call waits: its `this` is the first of `kept`, its
  //     first argument is `first`, and the others follow in `kept` from the third on, up to `count`
  // I2  when fn is called, all is as after its run: it may throw, call again or cancel
  // I3  fn is never called within itself: such a call waits
  checkFunction("fn", fn);
  if (signal !== undefined) checkFunction("signal.addEventListener", (signal as Listening | null)?.addEventListener);
  let first: unknown; // apart from the others: to write to an array takes as long as all the rest
  let kept: unknown[] = [];
  let count = 0;
  let timer: Timer | undefined;
  let calledAt = -Infinity;
  let ranAt = -Infinity;
  let isRunning = false;
  let result: R | undefined;

  function call(this: This, ...args: Args): R | undefined {
    kept[0] = this;
    first = args[0];
    count = args.length + 1;
    for (let i = 2; i < count; i += 1) kept[i] = args[i - 1]; // to keep `args` itself would take longer than all the rest
    const now = coarseNow(clock);
    if ((now === calledAt && timer) || signal?.aborted) return result; // within a burst nothing else has changed
    const isEdge = !(leftMs(now) > 0); // before the first call it is no number
    calledAt = now;
    if (isEdge && !isRunning && (leading || (timer && now - ranAt >= maxWaitMs))) return run(); // or the timer is late
    if (isEdge && !timer) ranAt = now;
    if (!trailing) drop();
    else if (!timer) {
      signal?.addEventListener("abort", drop); // first: it may throw
      timer = clock.setTimer(leftMs(now), task);
    }
    return result;
  }

  /** Until the burst is over, or has lasted long enough. */
  const leftMs = (now: number): number => Math.min(calledAt + quietMs, ranAt + maxWaitMs) - now;

  /** Makes the call that waits none. */
  const drop = (): void => {
    if (timer) signal?.removeEventListener("abort", drop);
    timer?.cancel();
    timer = first = undefined;
    kept = [];
  };

  const run = (): R => {
    kept[1] = first;
    const waiting = kept.slice(0, count) as [This, ...Args];
    drop();
    ranAt = clock.now();
    isRunning = true;
    try {
      return (result = fn.call(...waiting));
    } finally {
      isRunning = false;
    }
  };

  const pending = (): boolean => !!timer && !signal?.aborted;

  const flush = (): R | undefined => (pending() && !isRunning ? run() : undefined);

  const task = {
    onTimer() {
      try {
        const left = leftMs(clock.now());
        if (left > 0) {
          timer = clock.setTimer(left, task);
          return;
        }
      } catch (error) {
        drop(); // or later calls would wait for a timer that isn't set (I1)
        throw error;
      }
      flush();
    },
  };

  const cancel = (): void => {
    drop();
    calledAt = ranAt = -Infinity;
  };

  return Object.assign(call, { cancel, flush, pending });
}
