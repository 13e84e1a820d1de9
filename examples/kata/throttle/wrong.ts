import type { Version } from "../exercise.ts";
import type { Pace, Paced } from "../paced-checks.ts";

type Timer = ReturnType<typeof setTimeout>;
type Fn<Args extends unknown[], R> = (this: unknown, ...args: Args) => R;

export const starter: Version<Pace> = {
  title: "the last call is lost",
  made<Args extends unknown[], R>(fn: Fn<Args, R>, waitMs: number): Paced<Args, R> {
    let ranAt = -Infinity;
    function throttled(this: unknown, ...args: Args): void {
      if (Date.now() - ranAt < waitMs) return;
      ranAt = Date.now();
      fn.apply(this, args);
    }
    return Object.assign(throttled, { cancel: () => {}, flush: () => undefined });
  },
};

export const wrong: readonly Version<Pace>[] = [
  {
    title: "the last run begins no wait",
    made<Args extends unknown[], R>(fn: Fn<Args, R>, waitMs: number): Paced<Args, R> {
      let timer: Timer | undefined;
      let waiting: (() => R) | undefined;
      const flush = (): R | undefined => {
        const run = waiting;
        clearTimeout(timer);
        timer = waiting = undefined;
        return run?.();
      };
      function throttled(this: unknown, ...args: Args): void {
        const run = (): R => fn.apply(this, args);
        if (timer !== undefined) waiting = run;
        else {
          timer = setTimeout(flush, waitMs);
          run();
        }
      }
      const cancel = (): void => void (waiting = undefined);
      return Object.assign(throttled, { cancel, flush });
    },
  },
  {
    title: "the first of those that wait is run, not the last",
    made<Args extends unknown[], R>(fn: Fn<Args, R>, waitMs: number): Paced<Args, R> {
      let timer: Timer | undefined;
      let waiting: (() => R) | undefined;
      const onTimer = (): void => {
        timer = undefined;
        flush();
      };
      const flush = (): R | undefined => {
        const run = waiting;
        if (run === undefined) return undefined;
        clearTimeout(timer);
        waiting = undefined;
        timer = setTimeout(onTimer, waitMs);
        return run();
      };
      function throttled(this: unknown, ...args: Args): void {
        waiting ??= () => fn.apply(this, args);
        if (timer === undefined) flush();
      }
      return Object.assign(throttled, { cancel: () => void (waiting = undefined), flush });
    },
  },
  {
    title: "a single call runs at both ends",
    made<Args extends unknown[], R>(fn: Fn<Args, R>, waitMs: number): Paced<Args, R> {
      let timer: Timer | undefined;
      let waiting: (() => R) | undefined;
      const flush = (): R | undefined => {
        const run = waiting;
        clearTimeout(timer);
        timer = waiting = undefined;
        return run?.();
      };
      function throttled(this: unknown, ...args: Args): void {
        waiting = () => fn.apply(this, args);
        if (timer !== undefined) return;
        timer = setTimeout(flush, waitMs);
        waiting();
      }
      return Object.assign(throttled, { cancel: () => void (waiting = undefined), flush });
    },
  },
  {
    title: "an interval that is never cleared",
    made<Args extends unknown[], R>(fn: Fn<Args, R>, waitMs: number): Paced<Args, R> {
      let timer: Timer | undefined;
      let waiting: (() => R) | undefined;
      const flush = (): R | undefined => {
        const run = waiting;
        waiting = undefined;
        return run?.();
      };
      function throttled(this: unknown, ...args: Args): void {
        waiting = () => fn.apply(this, args);
        if (timer !== undefined) return;
        timer = setInterval(flush, waitMs);
        flush();
      }
      return Object.assign(throttled, { cancel: () => void (waiting = undefined), flush });
    },
  },
  {
    title: "an arrow function: this is lost",
    made<Args extends unknown[], R>(fn: Fn<Args, R>, waitMs: number): Paced<Args, R> {
      let timer: Timer | undefined;
      let waiting: Args | undefined;
      const onTimer = (): void => {
        timer = undefined;
        flush();
      };
      const flush = (): R | undefined => {
        const args = waiting;
        if (args === undefined) return undefined;
        clearTimeout(timer);
        waiting = undefined;
        timer = setTimeout(onTimer, waitMs);
        return fn(...args);
      };
      const throttled = (...args: Args): void => {
        waiting = args;
        if (timer === undefined) flush();
      };
      return Object.assign(throttled, { cancel: () => void (waiting = undefined), flush });
    },
  },
  {
    title: "cancel forgets the timer, and not the call",
    made<Args extends unknown[], R>(fn: Fn<Args, R>, waitMs: number): Paced<Args, R> {
      let timer: Timer | undefined;
      let waiting: (() => R) | undefined;
      const onTimer = (): void => {
        timer = undefined;
        flush();
      };
      const flush = (): R | undefined => {
        const run = waiting;
        if (run === undefined) return undefined;
        clearTimeout(timer);
        waiting = undefined;
        timer = setTimeout(onTimer, waitMs);
        return run();
      };
      function throttled(this: unknown, ...args: Args): void {
        waiting = () => fn.apply(this, args);
        if (timer === undefined) flush();
      }
      return Object.assign(throttled, { cancel: () => clearTimeout(timer), flush });
    },
  },
];
