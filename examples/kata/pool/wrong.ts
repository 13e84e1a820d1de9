import type { Version } from "../exercise.ts";
import { asyncPool, type Pool } from "./solution.ts";

type PoolFunction<T, R> = (item: T, index: number, signal: AbortSignal) => Promise<R>;

export const starter: Version<Pool> = {
  title: "a rejection stops nobody",
  async made<T, R>(limit: number, items: readonly T[], fn: PoolFunction<T, R>): Promise<R[]> {
    if (!Number.isInteger(limit) || limit < 1) throw new RangeError("limit");
    const results: R[] = [];
    const { signal } = new AbortController();
    let next = 0;
    const work = async (): Promise<void> => {
      while (next < items.length) {
        const index = next++;
        results[index] = await fn(items[index] as T, index, signal);
      }
    };
    await Promise.all(Array.from({ length: limit }, work));
    return results;
  },
};

export const wrong: readonly Version<Pool>[] = [
  {
    title: "all at once",
    made<T, R>(_: number, items: readonly T[], fn: PoolFunction<T, R>): Promise<R[]> {
      const { signal } = new AbortController();
      return Promise.all(items.map((item, index) => fn(item, index, signal)));
    },
  },
  {
    title: "in chunks, each as slow as its slowest",
    async made<T, R>(limit: number, items: readonly T[], fn: PoolFunction<T, R>): Promise<R[]> {
      if (!Number.isInteger(limit) || limit < 1) throw new RangeError("limit");
      const results: R[] = [];
      const { signal } = new AbortController();
      for (let from = 0; from < items.length; from += limit) {
        const chunk = items.slice(from, from + limit);
        results.push(...(await Promise.all(chunk.map((item, index) => fn(item, from + index, signal)))));
      }
      return results;
    },
  },
  {
    title: "results are pushed as they come",
    async made<T, R>(limit: number, items: readonly T[], fn: PoolFunction<T, R>): Promise<R[]> {
      const results: R[] = [];
      const stop = new AbortController();
      let next = 0;
      const work = async (): Promise<void> => {
        while (next < items.length) {
          const index = next++;
          results.push(await fn(items[index] as T, index, stop.signal));
        }
      };
      await Promise.all(Array.from({ length: limit }, work));
      return results;
    },
  },
  {
    title: "looks, awaits, and then claims",
    async made<T, R>(limit: number, items: readonly T[], fn: PoolFunction<T, R>): Promise<R[]> {
      const results: R[] = [];
      const stop = new AbortController();
      let next = 0;
      const work = async (): Promise<void> => {
        while (next < items.length) {
          const index = next;
          const result = await fn(items[index] as T, index, stop.signal);
          results[index] = result;
          next = index + 1;
        }
      };
      await Promise.all(Array.from({ length: limit }, work));
      return results;
    },
  },
  {
    title: "resolves when the last has, and hangs without one",
    made<T, R>(limit: number, items: readonly T[], fn: PoolFunction<T, R>): Promise<R[]> {
      const { signal } = new AbortController();
      return new Promise((resolve, reject) => {
        const results: R[] = [];
        let next = 0;
        let done = 0;
        const work = async (): Promise<void> => {
          const index = next++;
          if (index >= items.length) return;
          results[index] = await fn(items[index] as T, index, signal);
          done += 1;
          if (done === items.length) resolve(results);
          else await work();
        };
        for (let worker = 0; worker < limit; worker += 1) work().catch(reject);
      });
    },
  },
  {
    title: "the error is wrapped: nobody can tell a 404 from a 503",
    async made<T, R>(limit: number, items: readonly T[], fn: PoolFunction<T, R>): Promise<R[]> {
      try {
        return await asyncPool(limit, items, fn);
      } catch (cause) {
        throw cause instanceof RangeError ? cause : new Error("an item failed", { cause });
      }
    },
  },
  {
    title: "what fn throws at once escapes",
    made<T, R>(limit: number, items: readonly T[], fn: PoolFunction<T, R>): Promise<R[]> {
      if (!Number.isInteger(limit) || limit < 1) return Promise.reject(new RangeError("limit"));
      const results: R[] = [];
      const stop = new AbortController();
      let next = 0;
      const step = (): Promise<void> => {
        if (next >= items.length || stop.signal.aborted) return Promise.resolve();
        const index = next++;
        return fn(items[index] as T, index, stop.signal).then(
          (result) => {
            results[index] = result;
            return step();
          },
          (error: unknown) => {
            stop.abort(error);
            throw error;
          },
        );
      };
      return Promise.all(Array.from({ length: limit }, step)).then(() => results);
    },
  },
];
