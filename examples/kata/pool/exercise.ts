import { mapLimit } from "sluice";
import { type Check, equal, type Exercise, failsWith } from "../exercise.ts";
import { asyncPool, type Pool } from "./solution.ts";
import { starter, wrong } from "./wrong.ts";

const task = `Write asyncPool(limit, items, fn): it calls fn(item, index, signal) for each item, at most limit at a time, and
resolves with the results in the order of the items. The first rejection is that of the whole: no further item starts,
and the signal of those that run is aborted.`;

const checks: readonly Check<Pool>[] = [
  {
    title: "runs as many as the limit at a time, never more",
    async run(pool, stage) {
      let running = 0;
      let peak = 0;
      const fn = async (ms: number): Promise<void> => {
        running += 1;
        peak = Math.max(peak, running);
        await stage.sleep(ms);
        running -= 1;
      };
      await stage.outcome(() => pool(3, [30, 10, 20, 10, 30, 20, 10], fn));
      equal(peak, 3);
    },
  },
  {
    title: "starts the next as soon as one has ended",
    async run(pool, stage) {
      let endedAt = 0;
      const call = pool(2, [100, 10, 20, 30, 40], (ms) => stage.sleep(ms)).then(() => (endedAt = stage.now));
      await stage.outcome(() => call);
      equal(endedAt, 100);
    },
  },
  {
    title: "gives the results in the order of the items",
    async run(pool, stage) {
      const fn = (ms: number, index: number): Promise<string> => stage.sleep(ms).then(() => `${index}: ${ms}`);
      equal(await stage.outcome(() => pool(2, [30, 20, 10], fn)), { value: ["0: 30", "1: 20", "2: 10"] });
    },
  },
  {
    title: "calls each item once",
    async run(pool, stage) {
      const called: unknown[] = [];
      await stage.outcome(() => pool(3, ["a", "b", "c", "d"], async (item) => void called.push(item)));
      equal(called, ["a", "b", "c", "d"]);
    },
  },
  {
    title: "is done at once with an empty list",
    async run(pool, stage) {
      equal(await stage.outcome(() => pool(2, [], (item) => Promise.resolve(item))), { value: [] });
    },
  },
  {
    title: "rejects with the first rejection, and starts nothing more",
    async run(pool, stage) {
      const error = new Error("refused");
      const started: number[] = [];
      const fn = async (ms: number, index: number): Promise<void> => {
        started.push(index);
        await stage.sleep(ms);
        if (index === 0) throw error;
      };
      failsWith(await stage.outcome(() => pool(3, [10, 10, 20, 10, 10, 10], fn)), error);
      equal(started, [0, 1, 2]);
    },
  },
  {
    title: "aborts those that run when one has failed",
    async run(pool, stage) {
      const aborted: number[] = [];
      const fn = async (_: string, index: number, signal: AbortSignal): Promise<void> => {
        signal.addEventListener("abort", () => aborted.push(index));
        await stage.sleep(10 * (index + 1));
        if (index === 0) throw new Error("refused");
      };
      await stage.outcome(() => pool(2, ["a", "b", "c"], fn));
      equal(aborted.includes(1), true);
    },
  },
  {
    title: "rejects with what fn throws at once",
    async run(pool, stage) {
      const error = new Error("thrown");
      const fn = (): never => {
        throw error;
      };
      failsWith(await stage.outcome(() => pool(2, ["a"], fn)), error);
    },
  },
  {
    title: "refuses a limit that is no whole number of at least 1",
    async run(pool, stage) {
      for (const limit of [0, -1, 1.5, NaN]) {
        const outcome = await stage.outcome(() => pool(limit, ["a"], (item) => Promise.resolve(item)));
        equal([limit, outcome !== "hangs" && "error" in outcome && outcome.error instanceof RangeError], [limit, true]);
      }
    },
  },
];

export const pool: Exercise<Pool> = {
  name: "pool",
  task,
  checks,
  starter,
  solution: asyncPool,
  wrong,
  adapter: () => (limit, items, fn) => mapLimit(items, limit, (item, { index, signal }) => fn(item, index, signal)),
};
