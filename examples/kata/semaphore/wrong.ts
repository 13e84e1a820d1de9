import type { Version } from "../exercise.ts";
import { CountingSemaphore, type MakeSemaphore, type Semaphore } from "./solution.ts";

export const starter: Version<MakeSemaphore> = {
  title: "release counts up first",
  made(permits) {
    const waiting: (() => void)[] = [];
    let free = permits;
    const acquire = async (): Promise<void> => {
      if (free === 0) await new Promise<void>((resolve) => waiting.push(resolve));
      free -= 1;
    };
    const release = (): void => {
      free = Math.min(permits, free + 1);
      waiting.shift()?.();
    };
    return withUse(acquire, release);
  },
};

export const wrong: readonly Version<MakeSemaphore>[] = [
  {
    title: "no finally",
    made(permits) {
      const right = new CountingSemaphore(permits);
      return {
        acquire: () => right.acquire(),
        release: () => right.release(),
        async use(fn) {
          await right.acquire();
          const result = await fn();
          right.release();
          return result;
        },
      };
    },
  },
  {
    title: "looks, awaits, and then takes",
    made(permits) {
      let free = permits;
      const acquire = async (): Promise<void> => {
        const isEmpty = (): boolean => free <= 0;
        while (isEmpty()) await new Promise((resolve) => setTimeout(resolve, 1));
        await Promise.resolve("as for a log line");
        free -= 1;
      };
      const release = (): void => void (free = Math.min(permits, free + 1));
      return withUse(acquire, release);
    },
  },
  {
    title: "last come, first served",
    made(permits) {
      const waiting: (() => void)[] = [];
      let free = permits;
      const acquire = async (): Promise<void> => {
        if (free > 0) free -= 1;
        else await new Promise<void>((resolve) => waiting.push(resolve));
      };
      const release = (): void => {
        const next = waiting.pop();
        if (next !== undefined) next();
        else free = Math.min(permits, free + 1);
      };
      return withUse(acquire, release);
    },
  },
  {
    title: "a release too many makes a permit",
    made(permits) {
      const waiting: (() => void)[] = [];
      let free = permits;
      const acquire = async (): Promise<void> => {
        if (free > 0) free -= 1;
        else await new Promise<void>((resolve) => waiting.push(resolve));
      };
      const release = (): void => {
        const next = waiting.shift();
        if (next !== undefined) next();
        else free += 1;
      };
      return withUse(acquire, release);
    },
  },
];

function withUse(acquire: () => Promise<void>, release: () => void): Semaphore {
  return {
    acquire,
    release,
    async use(fn) {
      await acquire();
      try {
        return await fn();
      } finally {
        release();
      }
    },
  };
}
