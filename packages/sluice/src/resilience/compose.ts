/**
 * Policies within each other as one, the outermost first. From the outside in, an order in which each does its work:
 *
 * 1. `fallback`, which answers for all that fails inside;
 * 2. `timeout` for the whole, so that retries don't outlive the caller;
 * 3. `retry`, once: layers of it multiply;
 * 4. `CircuitBreaker`, which counts each attempt, and ends the retry once it is open;
 * 5. `timeout` for one attempt, which the breaker counts as a failure: it doesn't hear of the outer one;
 * 6. `RateLimiter`, which each attempt takes from;
 * 7. `Limiter`, `AdaptiveLimiter` or `Semaphore`, whose slot is taken last and given back while a retry waits;
 * 8. `chaos`.
 *
 * Orders that defeat one of them are told in `problems`, and by the doctor.
 */
import { checkWait } from "../internal/check.ts";
import { keepModel } from "../internal/model.ts";
import { nameOf, register } from "../internal/names.ts";
import {
  type EnclosedWork,
  type EncloseStage,
  type PassStage,
  type Reported,
  type StagedCall,
  stageOf,
} from "../internal/stage.ts";
import { whenSettled } from "../internal/when-settled.ts";
import type { Policy, RunContext, Task, WaitOptions } from "../policy.ts";
import { mergeContexts, NOTHING } from "./compose-context.ts";
import { type ComposeProblem, findProblems, kindOf } from "./compose-problems.ts";
import type { Composed, ComposedContext, ComposedOptions, ComposedStats } from "./compose-types.ts";

/** At least one policy; a composed one counts for its layers. */
export function compose<const P extends readonly [Policy, ...Policy[]]>(...policies: P): Composed<P> {
  return new Composition(policies);
}

const PLAIN: WaitOptions = {};

class Composition<P extends readonly Policy[]> implements Composed<P> {
  readonly layers: readonly Policy[];
  readonly problems: readonly ComposeProblem[];
  #layers: Layers;

  constructor(policies: readonly Policy[]) {
    if (policies.length === 0) throw new RangeError("policies must be at least 1, got 0");
    for (const [index, policy] of policies.entries()) {
      if (typeof (policy as Policy | undefined)?.run !== "function")
        throw new TypeError(`policy ${index + 1} must have a method run, got ${typeof policy}`);
    }
    this.layers = policies.flatMap((policy) => (policy instanceof Composition ? policy.layers : [policy]));
    this.problems = findProblems(this.layers);
    this.#layers = toLayers(this.layers);
    if (this.layers.some((layer) => nameOf(layer) !== undefined)) register("compose", { name: this.#order }, this);
  }

  get #order(): string {
    return this.layers.map(titleOf).join(" > ");
  }

  stats(): ComposedStats {
    return { order: this.#order, problems: this.problems.length };
  }

  /** For `sluice/observe`, when layers are given another `run` or back their own. */
  restage(): void {
    this.#layers = toLayers(this.layers);
  }

  run<T>(
    fn: (context: ComposedContext<P>) => T | PromiseLike<T>,
    options: ComposedOptions<P> = PLAIN as ComposedOptions<P>,
  ): Promise<T> {
    try {
      if (options !== PLAIN) checkWait(options);
      const { signal } = options;
      return Promise.resolve(
        enter(this.#layers, fn as Task<T>, options, 0, signal === undefined ? NOTHING : { signal }),
      );
    } catch (error) {
      return Promise.reject(error);
    }
  }
}

interface Layer {
  readonly policy: Policy;
  readonly pass: Pass | undefined;
  readonly enclosing: EncloseStage | undefined;
  /** No layer around it adds more to the context than a signal. */
  readonly isFirstToAdd: boolean;
}

type Pass = Required<{ readonly [K in keyof PassStage]: NonNullable<PassStage[K]> }>;

type Layers = readonly Layer[];

function toLayers(policies: readonly Policy[]): Layers {
  let isFirstToAdd = true;
  return policies.map((policy) => {
    const stage = stageOf(policy);
    const isPass = stage !== undefined && "enter" in stage;
    const layer = {
      policy,
      pass: isPass ? toPass(stage) : undefined,
      enclosing: isPass ? undefined : stage,
      isFirstToAdd,
    };
    isFirstToAdd &&= stage !== undefined && !(isPass && stage.hasContext === true);
    return layer;
  });
}

/** In one form for all, which is read in half the time. */
function toPass(stage: PassStage): Pass {
  const { hasContext = false, hasMemory = false } = stage;
  return { hasContext, hasMemory, enter: stage.enter, leave: stage.leave };
}

/** Calls `fn` within the layers from `index` on. Throws what it throws, or a stage does. */
function enter<T>(
  layers: Layers,
  fn: Task<T>,
  options: WaitOptions,
  index: number,
  around: RunContext,
): T | PromiseLike<T> {
  const layer = layers[index];
  if (layer === undefined) return fn(around);
  const { policy, pass, enclosing } = layer;
  if (pass !== undefined) return new Passage(layers, fn, options, index, around).pass();
  if (enclosing === undefined) return runLayer(policy, layers, fn, options, index, around);
  return enclosing.enclose(new Passage(layers, fn, options, index + 1, around), around.signal) as Promise<T>;
}

function runLayer<T>(
  policy: Policy,
  layers: Layers,
  fn: Task<T>,
  options: WaitOptions,
  index: number,
  around: RunContext,
): PromiseLike<T> {
  const { signal } = around;
  const inside = (context: RunContext): T | PromiseLike<T> =>
    enter(layers, fn, options, index + 1, mergeContexts(around, context));
  return policy.run(inside, signal === options.signal ? options : { ...options, signal });
}

/** Of a call through stages that follow each other: one object and one promise for all of them. */
class Passage<T> implements StagedCall, EnclosedWork {
  // I1  each stage that let the call in is left once, the innermost first
  // I2  #leaving stages, the outermost, have not been left; the next is left when what the last one returned has settled
  // I3  at most one of the stages has a context, #handed, which those inside of it have around them as well; and at most one
  //     other has a memory: with an array for what all of them remember, a call would take a tenth more
  readonly #layers: Layers;
  readonly #fn: Task<T>;
  readonly #options: WaitOptions;
  readonly #from: number;
  #around: RunContext;
  #handed: RunContext | undefined = undefined;
  #memory: unknown = undefined;
  #leaving = 0;

  constructor(layers: Layers, fn: Task<T>, options: WaitOptions, from: number, around: RunContext) {
    this.#layers = layers;
    this.#fn = fn;
    this.#options = options;
    this.#from = from;
    this.#around = around;
  }

  get signal(): AbortSignal | undefined {
    return this.#around.signal;
  }

  /** Throws what the call ends with, if it fails at once. */
  pass(): T | Promise<T> {
    let result: T | PromiseLike<T>;
    try {
      result = this.#goIn();
    } catch (error) {
      return this.#goOut(false, error);
    }
    return this.#goOutAfter(result);
  }

  start(context: RunContext, to: Reported): void {
    this.#around = mergeContexts(this.#around, context);
    try {
      const result = this.#goIn();
      void whenSettled(
        result,
        (value) => this.#report(true, value, to),
        (reason) => this.#report(false, reason, to),
      );
    } catch (error) {
      this.#report(false, error, to);
    }
  }

  again(context: RunContext): Promise<T> {
    const index = this.#from + this.#leaving;
    const isWithin = this.#layers.slice(this.#from, index).some(({ pass }) => pass?.hasContext === true);
    const around = isWithin ? mergeContexts(this.#around, this.#handed as RunContext) : this.#around;
    return Promise.resolve(enter(this.#layers, this.#fn, this.#options, index + 1, mergeContexts(around, context)));
  }

  #goIn(): T | PromiseLike<T> {
    const layers = this.#layers;
    const options = this.#options;
    let around = this.#around;
    let index = this.#from;
    for (let layer = layers[index]; layer !== undefined; layer = layers[index]) {
      const { pass } = layer;
      if (pass === undefined) break;
      const { hasContext, hasMemory } = pass;
      if ((hasContext && this.#handed !== undefined) || (hasMemory && this.#memory !== undefined)) break; // I3
      const entered = pass.enter(options, around);
      if (entered === undefined) return runLayer(layer.policy, layers, this.#fn, options, index, around);
      this.#leaving += 1;
      index += 1;
      if (hasContext) {
        this.#handed = entered as RunContext;
        around = layer.isFirstToAdd ? this.#handed : mergeContexts(around, this.#handed);
      } else if (hasMemory) this.#memory = entered;
    }
    return enter(layers, this.#fn, options, index, around);
  }

  /** Leaves the stages. Throws what the call ends with, if it failed. */
  #goOut(isFulfilled: boolean, result: unknown): T | Promise<T> {
    let isGood = isFulfilled;
    let outcome = result;
    while (this.#leaving > 0) {
      this.#leaving -= 1;
      try {
        const instead = this.#leave(isGood, outcome);
        if (instead !== undefined) return this.#goOutAfter(instead as Promise<T>);
      } catch (error) {
        isGood = false;
        outcome = error;
      }
    }
    if (isGood) return outcome as T;
    throw outcome;
  }

  #leave(isFulfilled: boolean, result: unknown): Promise<unknown> | undefined {
    const pass = this.#layers[this.#from + this.#leaving]?.pass as Pass;
    return pass.leave(pass.hasContext ? this.#handed : this.#memory, isFulfilled, result, this);
  }

  /** By itself, since a function that makes others keeps what these see in an object of its own from the start. */
  #goOutAfter(result: T | PromiseLike<T>): Promise<T> {
    return whenSettled(
      result,
      (value) => this.#goOut(true, value),
      (reason) => this.#goOut(false, reason),
    );
  }

  #report(isFulfilled: boolean, result: unknown, to: Reported): void {
    try {
      const outcome = this.#goOut(isFulfilled, result);
      if (outcome instanceof Promise) reportAfter(outcome, to);
      else to.succeed(outcome);
    } catch (error) {
      to.fail(error);
    }
  }
}

function reportAfter(outcome: Promise<unknown>, to: Reported): void {
  void outcome.then(
    (value) => to.succeed(value),
    (reason: unknown) => to.fail(reason),
  );
}

function titleOf(policy: Policy): string {
  const name = nameOf(policy)?.name;
  return name === undefined ? kindOf(policy) : `${kindOf(policy)} "${name}"`;
}

keepModel(new Passage([], () => {}, PLAIN, 0, NOTHING));
