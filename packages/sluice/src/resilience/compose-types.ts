/** What a composed policy has from its layers. */
import type { Policy, RunContext, WaitOptions } from "../policy.ts";
import type { ComposeProblem } from "./compose-problems.ts";

type RunOf<P> = P extends { run(fn: (context: infer C) => unknown, options?: infer O): unknown }
  ? { readonly context: C; readonly options: O }
  : never;

type Every<Union> = (Union extends unknown ? (each: Union) => void : never) extends (all: infer All) => void
  ? All
  : never;

/** What the function is handed: what all layers hand on. */
export type ComposedContext<P extends readonly Policy[]> = RunContext & Every<RunOf<P[number]>["context"]>;

/** What `run` takes: what the `run` of any layer takes. */
export type ComposedOptions<P extends readonly Policy[]> = WaitOptions &
  Every<NonNullable<RunOf<P[number]>["options"]>>;

export interface Composed<P extends readonly Policy[]> extends Policy {
  /** From the outermost to the innermost; a composed policy among them has been replaced by its layers. */
  readonly layers: readonly Policy[];
  /** What is wrong with their order. */
  readonly problems: readonly ComposeProblem[];
  /**
   * Calls `fn` within all layers, each of which is handed `options` too. `signal` ends whatever goes on; `timeoutMs`
   * limits each wait to be admitted, at each layer.
   */
  run<T>(fn: (context: ComposedContext<P>) => T | PromiseLike<T>, options?: ComposedOptions<P>): Promise<T>;
  stats(): ComposedStats;
}

export type ComposedStats = Readonly<{
  /** `timeout > retry > limiter` */
  order: string;
  problems: number;
}>;
