import { throttle as sluiceThrottle } from "sluice";
import { type Check, equal, type Exercise } from "../exercise.ts";
import { EVENTS, type Pace, pacedChecks, runsOf } from "../paced-checks.ts";
import { throttle as solution } from "./solution.ts";
import { starter, wrong } from "./wrong.ts";

const task = `Write throttle(fn, waitMs): it runs fn at most once in waitMs. A call runs at once if it may; of those made
meanwhile the last runs as soon as it may, with its arguments and its this, and begins the next waitMs. cancel() drops the
call that waits; flush() runs it now and returns what fn returned.`;

const checks: readonly Check<Pace>[] = [
  ...pacedChecks,
  {
    title: "runs the first call at once, then the last of each wait",
    async run(throttle, stage) {
      equal(await runsOf(throttle, EVENTS, stage), ["0 at 0", "80 at 100", "140 at 200", "400 at 400"]);
    },
  },
  {
    title: "begins a wait with the last run too: none comes right after it",
    async run(throttle, stage) {
      equal(await runsOf(throttle, [0, 50, 101], stage), ["0 at 0", "50 at 100", "101 at 200"]);
    },
  },
  {
    title: "begins a wait with a flush, too",
    async run(throttle, stage) {
      const runs: string[] = [];
      const throttled = throttle((call: number) => runs.push(`${call} at ${stage.now}`), 100);
      throttled(0);
      throttled(1);
      await stage.pass(60);
      throttled.flush();
      throttled(60);
      await stage.pass(1_000);
      equal(runs, ["0 at 0", "1 at 60", "60 at 160"]);
    },
  },
  {
    title: "runs the call that fn makes itself, a wait later",
    async run(throttle, stage) {
      const runs: string[] = [];
      const throttled = throttle((call: string) => {
        runs.push(`${call} at ${stage.now}`);
        if (call === "outer") throttled("inner");
      }, 100);
      throttled("outer");
      await stage.pass(1_000);
      equal(runs, ["outer at 0", "inner at 100"]);
    },
  },
];

export const throttle: Exercise<Pace> = {
  name: "throttle",
  task,
  checks,
  starter,
  solution,
  wrong,
  adapter: (clock) => (fn, waitMs) => sluiceThrottle(fn, waitMs, { clock }),
};
