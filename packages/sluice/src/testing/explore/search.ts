/** Which schedules are tried, and how one that fails is made shorter. */
import { seededRandom } from "../seeded-random.ts";
import type { ExploreFinding } from "./explore-error.ts";
import { type Decision, type Pick, type Run, runOnce } from "./explore-run.ts";
import type { Scenario } from "./scenario.ts";

/** Runs that making a schedule shorter may take, where the search was not exhaustive. */
const MAX_SHRINKS = 500;

export class Search {
  /** Runs so far, and those of them that were cut at `maxSteps`. */
  schedules = 0;
  cut = 0;
  /** Whether no schedule is left that could show a shorter failure. */
  isExhausted = false;
  readonly #scenario: Scenario;
  readonly #seed: number;
  readonly #maxSteps: number;
  #best: Failure | undefined;

  constructor(scenario: Scenario, seed: number, maxSteps: number) {
    this.#scenario = scenario;
    this.#seed = seed;
    this.#maxSteps = maxSteps;
  }

  /** Runs just this one. */
  replay(schedule: readonly string[]): Promise<ExploreFinding | undefined> {
    return this.#try((keys, depth) => {
      const wanted = schedule[depth];
      if (wanted === undefined) return 0;
      const index = keys.indexOf(wanted);
      if (index !== -1) return index;
      throw new RangeError(
        `schedule must fit the scenario: step ${depth + 1} is "${wanted}", could be "${keys.join('", "')}"`,
      );
    });
  }

  /**
   * Depth first, by running anew from the start: the next schedule differs in the last decision that has another way.
   * Once one has failed, only those that would be shorter, or as short with fewer switches, are of interest.
   */
  async exhaust(maxSchedules: number): Promise<ExploreFinding | undefined> {
    let path: readonly Decision[] = [];
    while (this.schedules < maxSchedules) {
      const fixed = path;
      const { outcome, decisions } = await this.#run((keys, depth) => {
        const decided = fixed[depth];
        if (decided === undefined) return 0;
        if (decided.keys.join("\n") === keys.join("\n")) return decided.picked;
        throw fickle(decided, depth, `"${keys.join('", "')}"`);
      });
      const missed = fixed[decisions.length];
      if (missed !== undefined && outcome === "passed") throw fickle(missed, decisions.length, "it ends");
      const last = decisions.findLastIndex(({ keys, picked }) => picked + 1 < keys.length);
      if (last === -1) {
        this.isExhausted = true;
        break;
      }
      const { keys, picked } = decisions[last] as Decision;
      path = [...decisions.slice(0, last), { keys, picked: picked + 1 }];
    }
    return this.#best?.finding;
  }

  async wander(runs: number): Promise<ExploreFinding | undefined> {
    const random = seededRandom(this.#seed);
    for (let run = 0; run < runs && this.#best === undefined; run += 1)
      await this.#run((keys) => Math.floor(random() * keys.length));
    return this.#best?.finding;
  }

  /** Leaves out ever smaller parts of the order, as long as it still fails with less: what is left out happens when it can. */
  async shrink(found: ExploreFinding): Promise<ExploreFinding> {
    const end = this.schedules + MAX_SHRINKS;
    let { schedule } = found;
    for (let size = schedule.length; size >= 1; size = Math.floor(size / 2)) {
      for (let at = 0; at < schedule.length && this.schedules < end; at += 1) {
        const before: Failure | undefined = this.#best;
        await this.#run(loosely([...schedule.slice(0, at), ...schedule.slice(at + size)]));
        if (this.#best === before) continue;
        schedule = this.#best?.finding.schedule ?? schedule;
        size = schedule.length;
        at = -1;
      }
    }
    return this.#best?.finding ?? found;
  }

  async #try(pick: Pick): Promise<ExploreFinding | undefined> {
    await this.#run(pick);
    return this.#best?.finding;
  }

  async #run(pick: Pick): Promise<Run> {
    this.schedules += 1;
    const maxSteps = Math.min(this.#maxSteps, this.#best?.finding.schedule.length ?? Infinity);
    const run = await runOnce(this.#scenario, pick, this.#seed, maxSteps);
    if (run.outcome === "cut") this.cut += 1;
    else if (run.outcome !== "passed" && isLess(run, this.#best))
      this.#best = { finding: run.outcome, switches: run.switches };
    return run;
  }
}

interface Failure {
  readonly finding: ExploreFinding;
  readonly switches: number;
}

function isLess({ outcome, switches }: Run, best: Failure | undefined): boolean {
  if (best === undefined) return true;
  const [steps, least] = [(outcome as ExploreFinding).schedule.length, best.finding.schedule.length];
  return steps < least || (steps === least && switches < best.switches);
}

function fickle({ keys }: Decision, depth: number, now: string): Error {
  const before = `"${keys.join('", "')}"`;
  return new Error(`the scenario must do the same each time: at step ${depth + 1} it could ${before}, and now ${now}`);
}

/** The first of `wanted` that can happen; if none can, whoever went last goes on. */
function loosely(wanted: readonly string[]): Pick {
  const left = [...wanted];
  return (keys) => {
    const next = left.findIndex((key) => keys.includes(key));
    const [key] = next === -1 ? [] : left.splice(next, 1);
    return key === undefined ? 0 : keys.indexOf(key);
  };
}
