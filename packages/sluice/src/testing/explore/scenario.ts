/** What a scenario for `explore` is written with. */
import type { Clock } from "../../clock/clock.ts";
import type { Random } from "../../internal/random.ts";

/**
 * Sets up what is tested anew, starts tasks, and looks at what came of it: `explore` calls it once for each schedule.
 * It must do the same each time, and wait for nothing but steps, `clock` and what these set off.
 */
export type Scenario = (stage: ExploreStage) => unknown;

/** A function is called when the step is picked. A promise is handed on when it has settled and the step is picked. */
export type StepWork<T> = (() => T | PromiseLike<T>) | PromiseLike<T>;

export interface ExploreActor {
  /**
   * A point at which others may go first. All that an actor does until its next step is one act, as is what happens
   * between two `await`s. Say what it does, as a verb with its object: it is printed after the actor's name.
   * The schedule goes on until it has happened, also if nobody waits for it; if it fails then, that is an unhandled
   * rejection as anywhere.
   */
  readonly step: <T = void>(label: string, work?: StepWork<T>) => Promise<T>;
  /** One of `choices`; each of them is tried. */
  readonly choose: <const C>(label: string, choices: readonly C[]) => C;
}

export interface ExploreStage extends ExploreActor {
  /** Starts an actor beside the others. Its failure fails the schedule. `background`: it needn't end. */
  readonly task: <T>(
    name: string,
    fn: (actor: ExploreActor) => T | PromiseLike<T>,
    options?: { readonly background?: boolean | undefined },
  ) => Promise<T>;
  /**
   * Checked after each step: must neither throw nor return false or a promise. `label` completes "it does not hold
   * that …".
   */
  readonly invariant: (label: string, check: () => unknown) => void;
  /** Its time passes to the next timer at any moment, as one more step. */
  readonly clock: Clock;
  /** The same numbers in each schedule. */
  readonly random: Random;
}
