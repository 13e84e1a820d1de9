import { type Permit, Semaphore as SluiceSemaphore } from "sluice";
import { type Check, equal, type Exercise, failsWith, microtasks } from "../exercise.ts";
import { CountingSemaphore, type MakeSemaphore } from "./solution.ts";
import { starter, wrong } from "./wrong.ts";

const task = `Write a semaphore with so many permits: acquire() waits for one, first come, first served; release() gives one
back, and never makes more of them than there were; use(fn) holds one while fn runs, however it ends.`;

const checks: readonly Check<MakeSemaphore>[] = [
  {
    title: "lets as many in as there are permits",
    async run(make, stage) {
      const semaphore = make(2);
      let inside = 0;
      for (const _ of [1, 2, 3]) void semaphore.acquire().then(() => (inside += 1));
      await stage.pass(1_000);
      equal(inside, 2);
      semaphore.release();
      await stage.pass(1_000);
      equal(inside, 3);
    },
  },
  {
    title: "lets them in in the order of coming",
    async run(make, stage) {
      const semaphore = make(1);
      const order: number[] = [];
      const uses = [0, 1, 2, 3].map((number) =>
        semaphore.use(() => stage.sleep(5).then(() => void order.push(number))),
      );
      await stage.outcome(() => Promise.all(uses));
      equal(order, [0, 1, 2, 3]);
    },
  },
  {
    title: "gives back what was held by something that failed",
    async run(make, stage) {
      const semaphore = make(3);
      const error = new Error("503");
      const fn = (): never => {
        throw error;
      };
      failsWith(await stage.outcome(() => semaphore.use(() => Promise.reject(error))), error);
      for (const _ of [1, 2, 3]) failsWith(await stage.outcome(() => semaphore.use(fn)), error);
      equal(await stage.outcome(() => semaphore.use(() => Promise.resolve("good"))), { value: "good" });
    },
  },
  {
    title: "never has more permits than it began with",
    async run(make, stage) {
      const semaphore = make(1);
      await stage.outcome(() => semaphore.use(() => Promise.resolve()));
      try {
        semaphore.release();
        semaphore.release();
      } catch {
        // it may say so
      }
      let inside = 0;
      for (const _ of [1, 2, 3]) void semaphore.acquire().then(() => (inside += 1));
      await stage.pass(1_000);
      equal(inside, 1);
    },
  },
  {
    title: "lets no newcomer in before the one that was woken",
    async run(make, stage) {
      for (let turns = 0; turns < 12; turns += 1) {
        const semaphore = make(1);
        await stage.outcome(() => semaphore.acquire());
        let inside = 0;
        const enter = (): unknown => (inside += 1);
        void semaphore.acquire().then(enter);
        semaphore.release();
        if (turns > 0) await microtasks(turns);
        void semaphore.acquire().then(enter);
        await microtasks(20);
        equal([turns, inside], [turns, 1]);
      }
    },
  },
];

export const semaphore: Exercise<MakeSemaphore> = {
  name: "semaphore",
  task,
  checks,
  starter,
  solution: (permits) => new CountingSemaphore(permits),
  wrong,
  adapter: (clock) => (permits) => {
    const made = new SluiceSemaphore(permits, { clock });
    const held: Permit[] = [];
    return {
      acquire: () => made.acquire().then((permit) => held.push(permit)),
      release: () => held.shift()?.release(),
      use: (fn) => made.run(fn),
    };
  },
};
