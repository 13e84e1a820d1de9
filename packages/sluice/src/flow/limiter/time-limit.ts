/** How long a call may run. What comes of it after that is no longer heard of. */
import type { Clock } from "../../clock/clock.ts";
import { TimeoutError } from "../../errors.ts";

/** As `call()`, or a `TimeoutError` after `ms`, once `onOverdue` has been told of it. Throws what the clock or `call` throws. */
export function limitTime(
  ms: number,
  clock: Clock,
  call: () => Promise<unknown>,
  onOverdue: (error: TimeoutError) => void,
): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  let isOver = false;
  const expire = (): void => {
    if (isOver) return;
    const error = new TimeoutError(ms);
    reject(error);
    onOverdue(error);
  };
  const timer = clock.setTimer(ms, { onTimer: () => queueMicrotask(expire) }); // an abort of the same turn wins
  const end = (): void => {
    isOver = true;
    timer.cancel();
  };
  try {
    const settled = call();
    settled.then(end, end);
    settled.then(resolve, reject);
    return promise;
  } catch (error) {
    end();
    throw error;
  }
}
