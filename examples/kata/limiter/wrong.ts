import type { Version } from "../exercise.ts";
import type { MakeLimiter } from "./solution.ts";

export const starter: Version<MakeLimiter> = {
  title: "counts down first, then wakes",
  made(limit) {
    const waiting: (() => void)[] = [];
    let running = 0;
    return async (fn) => {
      if (running >= limit) await new Promise<void>((resolve) => waiting.push(resolve));
      running += 1;
      try {
        return await fn();
      } finally {
        running -= 1;
        waiting.shift()?.();
      }
    };
  },
};

export const wrong: readonly Version<MakeLimiter>[] = [
  {
    title: "no finally",
    made(limit) {
      const waiting: (() => void)[] = [];
      let running = 0;
      return async (fn) => {
        if (running < limit) running += 1;
        else await new Promise<void>((resolve) => waiting.push(resolve));
        const result = await fn();
        const next = waiting.shift();
        if (next === undefined) running -= 1;
        else next();
        return result;
      };
    },
  },
  {
    title: "the slot of what throws at once is lost",
    made(limit) {
      const waiting: (() => void)[] = [];
      let running = 0;
      return async (fn) => {
        if (running < limit) running += 1;
        else await new Promise<void>((resolve) => waiting.push(resolve));
        return fn().finally(() => {
          const next = waiting.shift();
          if (next === undefined) running -= 1;
          else next();
        });
      };
    },
  },
  {
    title: "last come, first served",
    made(limit) {
      const waiting: (() => void)[] = [];
      let running = 0;
      return async (fn) => {
        if (running < limit) running += 1;
        else await new Promise<void>((resolve) => waiting.push(resolve));
        try {
          return await fn();
        } finally {
          const next = waiting.pop();
          if (next === undefined) running -= 1;
          else next();
        }
      };
    },
  },
  {
    title: "looks, awaits, and then counts",
    made(limit) {
      let running = 0;
      return async (fn) => {
        const isFull = (): boolean => running >= limit;
        while (isFull()) await new Promise((resolve) => setTimeout(resolve, 1));
        await Promise.resolve("as for a log line");
        running += 1;
        try {
          return await fn();
        } finally {
          running -= 1;
        }
      };
    },
  },
  {
    title: "the result is forgotten",
    made(limit) {
      const waiting: (() => Promise<void>)[] = [];
      let running = 0;
      const run = async (start: () => Promise<void>): Promise<void> => {
        await start();
        running -= 1;
        next();
      };
      const next = (): void => {
        const start = waiting.shift();
        if (start === undefined) return;
        running += 1;
        void run(start);
      };
      return (fn) =>
        new Promise((resolve) => {
          const start = async (): Promise<void> => {
            await fn();
            resolve(undefined as never);
          };
          waiting.push(() => start().catch(() => {}));
          if (running < limit) next();
        });
    },
  },
];
