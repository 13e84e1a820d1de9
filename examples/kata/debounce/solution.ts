import type { Paced } from "../paced-checks.ts";

export function debounce<Args extends unknown[], R>(
  fn: (this: unknown, ...args: Args) => R,
  waitMs: number,
): Paced<Args, R> {
  let waiting: (() => R) | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const cancel = (): void => {
    clearTimeout(timer);
    waiting = undefined;
  };
  const flush = (): R | undefined => {
    const run = waiting;
    cancel(); // before the run, which may call again
    return run?.();
  };
  function debounced(this: unknown, ...args: Args): void {
    waiting = () => fn.apply(this, args);
    clearTimeout(timer);
    timer = setTimeout(flush, waitMs);
  }
  return Object.assign(debounced, { cancel, flush });
}
