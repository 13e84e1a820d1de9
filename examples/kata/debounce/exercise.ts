import { debounce as sluiceDebounce } from "sluice";
import { type Check, equal, type Exercise } from "../exercise.ts";
import { EVENTS, type Pace, pacedChecks, runsOf } from "../paced-checks.ts";
import { debounce as solution } from "./solution.ts";
import { starter, wrong } from "./wrong.ts";

const task = `Write debounce(fn, waitMs): it runs fn waitMs after the last of a burst of calls, with the arguments and the this
of that call. cancel() drops the call that waits; flush() runs it now and returns what fn returned.`;

const checks: readonly Check<Pace>[] = [
  ...pacedChecks,
  {
    title: "runs the last call of each burst, a wait after it",
    async run(debounce, stage) {
      equal(await runsOf(debounce, EVENTS, stage), ["140 at 240", "400 at 500"]);
    },
  },
  {
    title: "does not run within a burst, however long",
    async run(debounce, stage) {
      const times = Array.from({ length: 20 }, (_, index) => index * 50);
      equal(await runsOf(debounce, times, stage), ["950 at 1050"]);
    },
  },
  {
    title: "runs a call that fn makes itself, in its turn",
    async run(debounce, stage) {
      const runs: string[] = [];
      const debounced = debounce((call: string) => {
        runs.push(`${call} at ${stage.now}`);
        if (call === "outer") debounced("inner");
      }, 100);
      debounced("outer");
      await stage.pass(1_000);
      equal(runs, ["outer at 100", "inner at 200"]);
    },
  },
];

export const debounce: Exercise<Pace> = {
  name: "debounce",
  task,
  checks,
  starter,
  solution,
  wrong,
  adapter: (clock) => (fn, waitMs) => sluiceDebounce(fn, waitMs, { clock }),
};
