/**
 * How a policy takes part in a composed call without a promise, a function and a frame of its own in each: it is told
 * when a call comes in and when it has ended, or it has the rest of the call report to it. What has no stage is entered
 * by its `run`. Either way a call must be to the policy what it is by `run`.
 */
import type { Policy, RunContext, WaitOptions } from "../policy.ts";

/** For what lets a call in at once or not at all, and has to know when it has ended. */
export interface PassStage {
  /** What `enter` returns is the context for what is inside, with the signal of what is around. @default false */
  readonly hasContext?: boolean | undefined;
  /** `leave` needs what `enter` returned, and else may be given anything. @default hasContext */
  readonly hasMemory?: boolean | undefined;
  /**
   * Lets a call in, in this turn, and returns what is to be known of it inside or by `leave`; undefined to have it go by `run` instead, as
   * where it would have to wait, or asks for more than is known here. Throws what it turns the call away with.
   * `options` are the caller's, whose signal has not aborted.
   */
  readonly enter: (options: WaitOptions, around: RunContext) => unknown;
  /**
   * What was let in has ended. Once for each `enter`. What this throws is the outcome from there on, and what it
   * returns, if anything, settles as the outcome will.
   */
  readonly leave: (
    entered: unknown,
    isFulfilled: boolean,
    result: unknown,
    call: StagedCall,
  ) => Promise<unknown> | undefined;
}

/** What a stage may ask of the call that leaves. */
export interface StagedCall {
  /** Of what is around. Read it only where it matters, as after a failure: some is made when it is first read. */
  readonly signal: AbortSignal | undefined;
  /** Calls what is inside once more. */
  again(context: RunContext): Promise<unknown>;
}

/** For what may answer before the call has ended. */
export interface EncloseStage {
  /** As `run` does: starts `work` with a context, and settles by what it reports or before that. */
  enclose(work: EnclosedWork, signal: AbortSignal | undefined): Promise<unknown>;
}

export interface EnclosedWork {
  /** Reports once, and throws nothing. */
  start(context: RunContext, to: Reported): void;
}

/** Throws nothing. */
export interface Reported {
  succeed(value: unknown): void;
  fail(error: unknown): void;
}

export type Stage = PassStage | EncloseStage;

/** By the `run` that they are another form of. */
const makers = new WeakMap<Policy["run"], (policy: never) => Stage | undefined>();

/** For a static block of a policy's class. What inherits its `run` has the stage too, and what has another has none. */
export function setStage<P extends Policy>(
  { prototype }: { readonly prototype: P },
  make: (policy: P) => Stage | undefined,
): void {
  makers.set(runOf(prototype), make);
}

export function stageOf(policy: Policy): Stage | undefined {
  return makers.get(runOf(policy))?.(policy as never);
}

function runOf({ run }: { readonly run: Policy["run"] }): Policy["run"] {
  return run;
}
