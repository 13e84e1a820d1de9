/**
 * Runs a scenario under each order in which its steps can happen, and finds one in which it goes wrong. JavaScript's own
 * order can't be permuted and needn't be: between two awaited answers from outside, code runs as it is written. What
 * differs from run to run is when answers come, and these are the steps.
 */
import { checkFunction, checkInteger, wrongType } from "../internal/check.ts";
import { ExploreError, type ExploreFinding } from "./explore/explore-error.ts";
import type { Scenario } from "./explore/scenario.ts";
import { Search } from "./explore/search.ts";

export interface ExploreOptions {
  /** Of `random`, and of the schedules tried at random. A safe integer. @default 1 */
  readonly seed?: number | undefined;
  /** Schedules tried one after the other, from those with the latest differences on. An integer >= 1. @default 10_000 */
  readonly maxSchedules?: number | undefined;
  /** Schedules tried at random, if those were not all. An integer >= 0. @default 1_000 */
  readonly randomSchedules?: number | undefined;
  /** Where a schedule is cut; what would happen later is not seen. An integer >= 1. @default 200 */
  readonly maxSteps?: number | undefined;
  /** Tries only this one, of an `ExploreError`; beyond its end, whoever went last goes on. */
  readonly schedule?: readonly string[] | undefined;
}

export type ExploreReport = Readonly<{
  /** Schedules tried. */
  schedules: number;
  /** Whether these were all there are, none of them cut. */
  exhaustive: boolean;
  /** Of them, those that were cut at `maxSteps`. */
  cut: number;
  seed: number;
}>;

/** Rejects with `ExploreError` if there is a schedule under which something throws, rejects or can't go on. */
export async function explore(scenario: Scenario, options: ExploreOptions = {}): Promise<ExploreReport> {
  checkFunction("scenario", scenario);
  const seed = checkInteger("seed", options.seed ?? 1, { min: Number.MIN_SAFE_INTEGER });
  const maxSchedules = checkInteger("maxSchedules", options.maxSchedules ?? 10_000, { min: 1 });
  const randomSchedules = checkInteger("randomSchedules", options.randomSchedules ?? 1_000, { min: 0 });
  const maxSteps = checkInteger("maxSteps", options.maxSteps ?? 200, { min: 1 });
  const search = new Search(scenario, seed, maxSteps);
  let finding: ExploreFinding | undefined;
  if (options.schedule !== undefined) finding = await search.replay(checkSchedule(options.schedule));
  else {
    finding = await search.exhaust(maxSchedules);
    if (finding === undefined && !search.isExhausted) finding = await search.wander(randomSchedules);
    if (finding !== undefined && !search.isExhausted) finding = await search.shrink(finding);
  }
  const { schedules, cut, isExhausted } = search;
  if (finding !== undefined) throw new ExploreError(finding, seed, schedules);
  return { schedules, exhaustive: isExhausted && cut === 0, cut, seed };
}

function checkSchedule(schedule: readonly string[]): readonly string[] {
  if (Array.isArray(schedule)) return schedule;
  throw wrongType("schedule", schedule, "a list of strings");
}
