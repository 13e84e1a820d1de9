import type { Paced } from "../paced-checks.ts";

export function throttle<Args extends unknown[], R>(
  fn: (this: unknown, ...args: Args) => R,
  waitMs: number,
): Paced<Args, R> {
  let waiting: (() => R) | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const cancel = (): void => {
    clearTimeout(timer);
    timer = waiting = undefined;
  };
  const flush = (): R | undefined => {
    const run = waiting;
    if (run === undefined) return undefined;
    cancel();
    timer = setTimeout(onTimer, waitMs); // each run begins a wait, the last one too
    return run();
  };
  const onTimer = (): void => {
    timer = undefined;
    flush();
  };
  function throttled(this: unknown, ...args: Args): void {
    waiting = () => fn.apply(this, args);
    if (timer === undefined) flush();
  }
  return Object.assign(throttled, { cancel, flush });
}
