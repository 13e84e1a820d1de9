import type { Version } from "../exercise.ts";
import type { Pace, Paced } from "../paced-checks.ts";

type Timer = ReturnType<typeof setTimeout>;
type Fn<Args extends unknown[], R> = (this: unknown, ...args: Args) => R;

export const starter: Version<Pace> = {
  title: "the timer goes on: each call is delayed, none dropped",
  made<Args extends unknown[], R>(fn: Fn<Args, R>, waitMs: number): Paced<Args, R> {
    let timer: Timer | undefined;
    let waiting: (() => R) | undefined;
    function debounced(this: unknown, ...args: Args): void {
      waiting = () => fn.apply(this, args);
      timer = setTimeout(waiting, waitMs);
    }
    const cancel = (): void => {
      clearTimeout(timer);
      waiting = undefined;
    };
    const flush = (): R | undefined => {
      const run = waiting;
      cancel();
      return run?.();
    };
    return Object.assign(debounced, { cancel, flush });
  },
};

export const wrong: readonly Version<Pace>[] = [
  {
    title: "the first timer counts: a throttle",
    made<Args extends unknown[], R>(fn: Fn<Args, R>, waitMs: number): Paced<Args, R> {
      let timer: Timer | undefined;
      let waiting: (() => R) | undefined;
      const cancel = (): void => {
        clearTimeout(timer);
        timer = waiting = undefined;
      };
      const flush = (): R | undefined => {
        const run = waiting;
        cancel();
        return run?.();
      };
      function debounced(this: unknown, ...args: Args): void {
        waiting = () => fn.apply(this, args);
        timer ??= setTimeout(flush, waitMs);
      }
      return Object.assign(debounced, { cancel, flush });
    },
  },
  {
    title: "the first call runs at once, and again at the end",
    made<Args extends unknown[], R>(fn: Fn<Args, R>, waitMs: number): Paced<Args, R> {
      let timer: Timer | undefined;
      let waiting: (() => R) | undefined;
      const cancel = (): void => {
        clearTimeout(timer);
        waiting = undefined;
      };
      const flush = (): R | undefined => {
        const run = waiting;
        cancel();
        return run?.();
      };
      function debounced(this: unknown, ...args: Args): void {
        const isFirst = waiting === undefined;
        waiting = () => fn.apply(this, args);
        clearTimeout(timer);
        timer = setTimeout(flush, waitMs);
        if (isFirst) waiting();
      }
      return Object.assign(debounced, { cancel, flush });
    },
  },
  {
    title: "an arrow function: this is lost",
    made<Args extends unknown[], R>(fn: Fn<Args, R>, waitMs: number): Paced<Args, R> {
      let timer: Timer | undefined;
      let waiting: Args | undefined;
      const cancel = (): void => {
        clearTimeout(timer);
        waiting = undefined;
      };
      const flush = (): R | undefined => {
        const args = waiting;
        cancel();
        return args && fn(...args);
      };
      const debounced = (...args: Args): void => {
        waiting = args;
        clearTimeout(timer);
        timer = setTimeout(flush, waitMs);
      };
      return Object.assign(debounced, { cancel, flush });
    },
  },
  {
    title: "state cleared after the run: a call within is lost",
    made<Args extends unknown[], R>(fn: Fn<Args, R>, waitMs: number): Paced<Args, R> {
      let timer: Timer | undefined;
      let waiting: (() => R) | undefined;
      const cancel = (): void => {
        clearTimeout(timer);
        waiting = undefined;
      };
      const flush = (): R | undefined => {
        const result = waiting?.();
        cancel();
        return result;
      };
      function debounced(this: unknown, ...args: Args): void {
        waiting = () => fn.apply(this, args);
        clearTimeout(timer);
        timer = setTimeout(flush, waitMs);
      }
      return Object.assign(debounced, { cancel, flush });
    },
  },
  {
    title: "flush leaves the timer: it runs twice",
    made<Args extends unknown[], R>(fn: Fn<Args, R>, waitMs: number): Paced<Args, R> {
      let timer: Timer | undefined;
      let waiting: (() => R) | undefined;
      function debounced(this: unknown, ...args: Args): void {
        waiting = () => fn.apply(this, args);
        clearTimeout(timer);
        timer = setTimeout(waiting, waitMs);
      }
      const cancel = (): void => {
        clearTimeout(timer);
        waiting = undefined;
      };
      return Object.assign(debounced, { cancel, flush: () => waiting?.() });
    },
  },
  {
    title: "cancel stops the timer, and flush runs it all the same",
    made<Args extends unknown[], R>(fn: Fn<Args, R>, waitMs: number): Paced<Args, R> {
      let timer: Timer | undefined;
      let waiting: (() => R) | undefined;
      const flush = (): R | undefined => {
        const run = waiting;
        clearTimeout(timer);
        waiting = undefined;
        return run?.();
      };
      function debounced(this: unknown, ...args: Args): void {
        waiting = () => fn.apply(this, args);
        clearTimeout(timer);
        timer = setTimeout(flush, waitMs);
      }
      return Object.assign(debounced, { cancel: () => clearTimeout(timer), flush });
    },
  },
  {
    title: "polls for the pause, for ever",
    made<Args extends unknown[], R>(fn: Fn<Args, R>, waitMs: number): Paced<Args, R> {
      let waiting: (() => R) | undefined;
      let calledAt = 0;
      let timer: Timer | undefined;
      const flush = (): R | undefined => {
        const run = waiting;
        waiting = undefined;
        return run?.();
      };
      const look = (): void => {
        if (Date.now() - calledAt >= waitMs) flush();
      };
      function debounced(this: unknown, ...args: Args): void {
        waiting = () => fn.apply(this, args);
        calledAt = Date.now();
        timer ??= setInterval(look, 10);
      }
      return Object.assign(debounced, { cancel: () => void (waiting = undefined), flush });
    },
  },
];
