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
import { nameOf, register } from "../internal/names.ts";
import { whenSettled } from "../internal/when-settled.ts";
import type { Policy, RunContext, Task, WaitOptions } from "../policy.ts";
import { addContext, mergeContexts, NOTHING } from "./compose-context.ts";
import { type ComposeProblem, findProblems, kindOf } from "./compose-problems.ts";
import { type Stage, type StagedCall, stageOf } from "./compose-stage.ts";
import type { Composed, ComposedContext, ComposedOptions, ComposedStats } from "./compose-types.ts";

/** At least one policy; a composed one counts for its layers. */
export function compose<const P extends readonly [Policy, ...Policy[]]>(...policies: P): Composed<P> {
  return new Composition(policies);
}

const PLAIN: WaitOptions = {};

class Composition<P extends readonly Policy[]> implements Composed<P> {
  readonly layers: readonly Policy[];
  readonly problems: readonly ComposeProblem[];
  readonly #layers: Layers;

  constructor(policies: readonly Policy[]) {
    if (policies.length === 0) throw new RangeError("policies must be at least 1, got 0");
    for (const [index, policy] of policies.entries()) {
      if (typeof (policy as Policy | undefined)?.run !== "function")
        throw new TypeError(`policy ${index + 1} must have a method run, got ${typeof policy}`);
    }
    this.layers = policies.flatMap((policy) => (policy instanceof Composition ? policy.layers : [policy]));
    this.problems = findProblems(this.layers);
    this.#layers = this.layers.map((policy) => ({ policy, stage: stageOf(policy) }));
    if (this.layers.some((layer) => nameOf(layer) !== undefined)) register("compose", { name: this.#order }, this);
  }

  get #order(): string {
    return this.layers.map(titleOf).join(" > ");
  }

  stats(): ComposedStats {
    return { order: this.#order, problems: this.problems.length };
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
  readonly stage: Stage | undefined;
}

type Layers = readonly Layer[];

/** Calls `fn` within the layers from `index` on. Throws what it throws, or a stage does. */
function enter<T>(
  layers: Layers,
  fn: Task<T>,
  options: WaitOptions,
  index: number,
  context: RunContext,
): T | PromiseLike<T> {
  const layer = layers[index];
  if (layer === undefined) return fn(context);
  if (layer.stage !== undefined) return new Passage(layers, fn, options, index, context).start();
  return runLayer(layers, fn, options, index, context);
}

function runLayer<T>(
  layers: Layers,
  fn: Task<T>,
  options: WaitOptions,
  index: number,
  context: RunContext,
): PromiseLike<T> {
  const { signal } = context;
  const inside = (more: RunContext): T | PromiseLike<T> =>
    enter(layers, fn, options, index + 1, mergeContexts(context, more));
  return (layers[index] as Layer).policy.run(inside, signal === options.signal ? options : { ...options, signal });
}

/** Of a call through layers that have stages, as many as follow each other: one object and one promise for all. */
class Passage<T> implements StagedCall {
  // I1  each stage that let the call in is left once, the innermost first
  // I2  #leaving is the stage that was left last: the next is left when what that one returned has settled
  // I3  at most one of the stages has a context: `again` has that of the layers around it, #around
  readonly #layers: Layers;
  readonly #fn: Task<T>;
  readonly #options: WaitOptions;
  readonly #from: number;
  readonly #around: RunContext;
  readonly #entered: unknown[] = [];
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

  start(): T | Promise<T> {
    let result: T | PromiseLike<T>;
    try {
      result = this.#goIn();
    } catch (error) {
      return this.#goOut(this.#entered.length, false, error);
    }
    return whenSettled(
      result,
      (value) => this.#goOut(this.#entered.length, true, value),
      (reason) => this.#goOut(this.#entered.length, false, reason),
    );
  }

  again(context: RunContext): Promise<T> {
    const index = this.#from + this.#leaving + 1;
    return Promise.resolve(enter(this.#layers, this.#fn, this.#options, index, mergeContexts(this.#around, context)));
  }

  #goIn(): T | PromiseLike<T> {
    const [layers, around] = [this.#layers, this.#around];
    let context = around;
    let index = this.#from;
    for (let stage = layers[index]?.stage; stage !== undefined; stage = layers[(index += 1)]?.stage) {
      if (stage.hasContext === true && context !== around) break; // I3
      const entered = stage.enter();
      if (entered === undefined) return runLayer(layers, this.#fn, this.#options, index, context);
      this.#entered.push(entered);
      if (stage.hasContext === true) context = addContext(around, entered as RunContext);
    }
    return enter(layers, this.#fn, this.#options, index, context);
  }

  /** Leaves the outermost `count` stages. Throws what the call ends with, if it failed. */
  #goOut(count: number, isFulfilled: boolean, result: unknown): T | Promise<T> {
    for (let index = count - 1; index >= 0; index -= 1) {
      try {
        const { stage } = this.#layers[this.#from + index] as Layer;
        this.#leaving = index;
        const instead = stage?.leave(this.#entered[index], isFulfilled, result, this);
        if (instead !== undefined) {
          return whenSettled(
            instead,
            (value) => this.#goOut(index, true, value),
            (reason) => this.#goOut(index, false, reason),
          );
        }
      } catch (error) {
        [isFulfilled, result] = [false, error];
      }
    }
    if (isFulfilled) return result as T;
    throw result;
  }
}

function titleOf(policy: Policy): string {
  const name = nameOf(policy)?.name;
  return name === undefined ? kindOf(policy) : `${kindOf(policy)} "${name}"`;
}
