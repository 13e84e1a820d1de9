/** The exercises, and what comes of examining each version of each. */
import { debounce } from "./debounce/exercise.ts";
import { examine, type Exercise } from "./exercise.ts";
import { limiter } from "./limiter/exercise.ts";
import { pool } from "./pool/exercise.ts";
import { semaphore } from "./semaphore/exercise.ts";
import { throttle } from "./throttle/exercise.ts";

export interface ExaminedVersion {
  readonly title: string;
  /** Titles of the checks that fail, in their order. */
  readonly fails: readonly string[];
}

export interface Examined {
  readonly name: string;
  readonly task: string;
  /** Titles. */
  readonly checks: readonly string[];
  readonly solution: ExaminedVersion;
  readonly sluice: ExaminedVersion;
  readonly starter: ExaminedVersion;
  readonly wrong: readonly ExaminedVersion[];
}

/** One after the other: each check has the global timers to itself. */
export async function examineAll(): Promise<Examined[]> {
  return [
    await examineOne(pool),
    await examineOne(limiter),
    await examineOne(semaphore),
    await examineOne(debounce),
    await examineOne(throttle),
  ];
}

async function examineOne<T>(exercise: Exercise<T>): Promise<Examined> {
  const { name, task, checks, solution, adapter, starter } = exercise;
  const failsOf = async (make: typeof adapter): Promise<string[]> =>
    (await examine(checks, make)).map(({ title }) => title);
  const wrong: ExaminedVersion[] = [];
  for (const { title, made } of [starter, ...exercise.wrong]) wrong.push({ title, fails: await failsOf(() => made) });
  return {
    name,
    task,
    checks: checks.map(({ title }) => title),
    solution: { title: "solution", fails: await failsOf(() => solution) },
    sluice: { title: "sluice", fails: await failsOf(adapter) },
    starter: wrong[0] as ExaminedVersion,
    wrong: wrong.slice(1),
  };
}
