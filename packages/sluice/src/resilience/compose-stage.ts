/**
 * How a policy takes part in a composed call without a promise, a function and a context of its own: it is told when a
 * call comes in and when it has ended. What has no stage is entered by its `run`.
 */
import type { RunContext } from "../policy.ts";

/** What a stage may ask of the call that leaves. */
export interface StagedCall {
  /** Of what is outside of this stage. Asked for only where needed, since some make theirs when it is first read. */
  readonly signal: AbortSignal | undefined;
  /** Calls what is inside of this stage once more. */
  again(context: RunContext): Promise<unknown>;
}

export interface Stage {
  /** Whether what `enter` returns is a context, with more than a signal to hand on to the function. */
  readonly hasContext?: boolean | undefined;
  /**
   * Lets a call in, in this turn, and returns what `leave` will be given; undefined to let `run` see to it, as where the
   * call would have to wait. Throws what it turns the call away with.
   */
  enter(): unknown;
  /**
   * What was let in has ended. Once for each `enter`. What this throws is the outcome from there on, and what it returns,
   * if anything, settles as the outcome will.
   */
  leave(entered: unknown, isFulfilled: boolean, result: unknown, call: StagedCall): Promise<unknown> | undefined;
}

const stages = new WeakMap<object, Stage>();

/** For the constructor of a policy. */
export function setStage(policy: object, stage: Stage): void {
  stages.set(policy, stage);
}

export function stageOf(policy: object): Stage | undefined {
  return stages.get(policy);
}
