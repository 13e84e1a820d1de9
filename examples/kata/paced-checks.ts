/** What holds of a debounced and of a throttled function alike. */
import { type Check, equal, type Stage } from "./exercise.ts";

/** Runs what it was made of less often than it is called. */
export interface Paced<Args extends unknown[], R> {
  (this: unknown, ...args: Args): unknown;
  /** Drops the call that waits. */
  cancel(): void;
  /** Runs the call that waits now, and returns what it returned. */
  flush(): R | undefined;
}

export type Pace = <Args extends unknown[], R>(
  fn: (this: unknown, ...args: Args) => R,
  waitMs: number,
) => Paced<Args, R>;

/** Calls it at these times, and says at which time it was run with what. */
export async function runsOf(pace: Pace, times: readonly number[], stage: Stage): Promise<string[]> {
  const from = stage.now;
  const runs: string[] = [];
  const paced = pace((at: number) => runs.push(`${at} at ${stage.now - from}`), 100);
  await stage.callAt(times, (at) => paced(at));
  return runs;
}

/** Of the table that tells the edges apart. */
export const EVENTS = [0, 20, 40, 60, 80, 120, 140, 400];

export const pacedChecks: readonly Check<Pace>[] = [
  {
    title: "runs a single call once",
    async run(pace, stage) {
      equal((await runsOf(pace, [0], stage)).length, 1);
    },
  },
  {
    title: "keeps what it was called on",
    async run(pace, stage) {
      const found: unknown[] = [];
      const button = {
        name: "save",
        press: pace(function press(this: unknown) {
          found.push((this as { readonly name?: string } | undefined)?.name);
        }, 100),
      };
      await stage.callAt([0, 20], () => button.press());
      equal(found.at(-1), "save");
    },
  },
  {
    title: "drops the call that waits when it is cancelled",
    async run(pace, stage) {
      const runs: number[] = [];
      const paced = pace((call: number) => runs.push(call), 100);
      paced(1);
      paced(2);
      paced.cancel();
      equal(paced.flush(), undefined);
      await stage.pass(1_000);
      equal(runs.includes(2), false);
    },
  },
  {
    title: "runs the call that waits when it is flushed, and not again",
    async run(pace, stage) {
      const runs: number[] = [];
      const paced = pace((call: number) => runs.push(call), 100);
      paced(1);
      paced(2);
      equal([paced.flush(), runs.at(-1)], [runs.length, 2]);
      const count = runs.length;
      equal(paced.flush(), undefined);
      await stage.pass(1_000);
      equal(runs.length, count);
    },
  },
  {
    title: "leaves no timer when nothing waits",
    async run(pace, stage) {
      await runsOf(pace, EVENTS, stage);
      equal(stage.timers, 0);
    },
  },
];
