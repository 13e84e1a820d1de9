import { limiter as sluiceLimiter } from "sluice";
import { type Check, equal, type Exercise, failsWith, microtasks } from "../exercise.ts";
import { type MakeLimiter, makeLimiter } from "./solution.ts";
import { starter, wrong } from "./wrong.ts";

const task = `Write makeLimiter(limit): a function that calls what it is given, at most limit at a time, first come, first
served, and resolves or rejects as that does.`;

const checks: readonly Check<MakeLimiter>[] = [
  {
    title: "runs as many as the limit at a time, never more",
    async run(make, stage) {
      const limit = make(2);
      let running = 0;
      let peak = 0;
      const fn = async (): Promise<void> => {
        running += 1;
        peak = Math.max(peak, running);
        await stage.sleep(10);
        running -= 1;
      };
      await stage.outcome(() => Promise.all([1, 2, 3, 4, 5].map(() => limit(fn))));
      equal(peak, 2);
    },
  },
  {
    title: "calls them in the order of coming",
    async run(make, stage) {
      const limit = make(1);
      const order: number[] = [];
      const calls = [0, 1, 2, 3].map((number) => limit(() => stage.sleep(10).then(() => void order.push(number))));
      await stage.outcome(() => Promise.all(calls));
      equal(order, [0, 1, 2, 3]);
    },
  },
  {
    title: "gives each caller its own result",
    async run(make, stage) {
      const limit = make(1);
      const calls = ["a", "b"].map((name) => limit(() => Promise.resolve(name)));
      equal(await stage.outcome(() => Promise.all(calls)), { value: ["a", "b"] });
    },
  },
  {
    title: "goes on after a rejection, which is its caller's",
    async run(make, stage) {
      const limit = make(1);
      const error = new Error("503");
      failsWith(await stage.outcome(() => limit(() => Promise.reject(error))), error);
      equal(await stage.outcome(() => limit(() => Promise.resolve("good"))), { value: "good" });
    },
  },
  {
    title: "goes on after what throws at once, which is a rejection",
    async run(make, stage) {
      const limit = make(1);
      const error = new Error("thrown");
      const fn = (): never => {
        throw error;
      };
      failsWith(await stage.outcome(() => limit(fn)), error);
      equal(await stage.outcome(() => limit(() => Promise.resolve("good"))), { value: "good" });
    },
  },
  {
    title: "lets no newcomer in between the end of one and the start of the next",
    async run(make, stage) {
      for (let turns = 0; turns < 12; turns += 1) {
        const limit = make(1);
        const first = Promise.withResolvers<void>();
        let running = 0;
        let peak = 0;
        const fn = async (): Promise<void> => {
          running += 1;
          peak = Math.max(peak, running);
          await microtasks(20);
          running -= 1;
        };
        const calls = [limit(() => first.promise), limit(fn)];
        await microtasks(1);
        first.resolve();
        if (turns > 0) await microtasks(turns);
        const last = limit(fn);
        await stage.outcome(() => Promise.all([...calls, last]));
        equal([turns, peak], [turns, 1]);
      }
    },
  },
];

export const limiter: Exercise<MakeLimiter> = {
  name: "limiter",
  task,
  checks,
  starter,
  solution: makeLimiter,
  wrong,
  adapter: (clock) => (limit) => {
    const run = sluiceLimiter(limit, { clock });
    return (fn) => run(fn);
  },
};
