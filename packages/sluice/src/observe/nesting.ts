/**
 * Which layers that repeat calls are called within which: while `enable` is on, each attempt of a retry, hedge or
 * failover with a name runs in an async context that tells the attempts around it. For so long such a policy has a `run`
 * of its own before that of its class: in a call that nobody watches there is not even something to compare.
 */
import { AsyncContext } from "../internal/async-context.ts";
import { type NamedEntry, namedEntries } from "../internal/names.ts";
import type { RunContext, Task, WaitOptions } from "../policy.ts";
import { endWith } from "./end-with.ts";
import { titleOf } from "./subject.ts";

/** By kind of layer, which of its counts tells attempts that were not the first of a call. */
export const REPEATED: ReadonlyMap<string, string> = new Map([
  ["retry", "retries"],
  ["hedge", "extra"],
  ["failover", "extra"],
]);

/** A layer and those it was called within, the outermost first. */
export type Nest = readonly Level[];

/** Of the calls and attempts of one layer, those from within which the innermost was called. */
export interface Level {
  readonly layer: NamedEntry;
  calls: number;
  attempts: number;
}

interface Attempt {
  readonly layer: NamedEntry;
  readonly reached: WeakSet<Nest>;
  /** One for all attempts of a call. */
  readonly reachedByCall: WeakSet<Nest>;
  isOver: boolean;
}

/** A policy, whose `run` may have another put before it. */
interface Runner {
  readonly run: (this: Runner, fn: Task<unknown>, options?: WaitOptions) => Promise<unknown>;
}

/** A layer may call itself for ever: what is deeper is not told apart from what calls it. */
const MAX_DEPTH = 8;
/** Names may be made up as the program goes on. */
const MAX_NESTS = 1_000;

/** The attempts that a call is made within, the outermost first. They know of none around them, so no chain is left. */
const context = new AsyncContext<readonly Attempt[]>();

export class Nesting {
  // I1  from `start` to `stop` a layer has a `run` of ours, and no composition enters it by a stage that was made before
  // I2  nothing in here refers to a policy but weakly
  readonly #runs = new WeakSet<Runner["run"]>();
  /** By the titles of their layers, what was called last at the end. */
  readonly #nests = new Map<string, Nest>();
  #isOver = false;

  get nests(): readonly Nest[] {
    return [...this.#nests.values()];
  }

  /** For all that has a name. Layers were made, and so come, before what is composed of them. */
  start(): void {
    for (const entry of namedEntries()) {
      this.watch(entry);
      restage(entry);
    }
  }

  stop(): void {
    this.#isOver = true; // for what was frozen meanwhile, and whoever has kept a `run` of ours
    for (const entry of namedEntries()) {
      const policy = entry.target.deref() as unknown as Runner | undefined;
      if (policy !== undefined && this.#runs.has(policy.run)) Reflect.deleteProperty(policy, "run");
      restage(entry);
    }
  }

  watch(layer: NamedEntry): void {
    const policy = REPEATED.has(layer.kind) ? (layer.target.deref() as unknown as Runner | undefined) : undefined;
    if (policy === undefined) return;
    const { run } = policy;
    const value: Runner["run"] = (fn, options) => run.call(policy, this.#within(layer, fn), options);
    this.#runs.add(value);
    Reflect.defineProperty(policy, "run", { value, configurable: true, writable: true });
  }

  /** `fn`, for one call of `layer`. */
  #within(layer: NamedEntry, fn: Task<unknown>): Task<unknown> {
    if (this.#isOver) return fn;
    const around = (context.get() ?? []).filter(({ isOver }) => !isOver);
    if (around.length === MAX_DEPTH) return fn;
    const nest = this.#nest([...around.map((attempt) => attempt.layer), layer]);
    const reachedByCall = new WeakSet<Nest>();
    return (given: RunContext) => {
      const attempt: Attempt = { layer, reached: new WeakSet(), reachedByCall, isOver: false };
      const path = [...around, attempt];
      count(nest, path);
      return endWith(
        () => void (attempt.isOver = true),
        () => context.run(path, () => fn(given)),
      );
    };
  }

  #nest(layers: readonly NamedEntry[]): Nest {
    const key = layers.map(titleOf).join(" > ");
    const nest = this.#nests.get(key) ?? layers.map((layer) => ({ layer, calls: 0, attempts: 0 }));
    this.#nests.delete(key);
    this.#nests.set(key, nest);
    if (this.#nests.size > MAX_NESTS) this.#nests.delete(this.#nests.keys().next().value as string);
    return nest;
  }
}

/** The last of `path` begins. */
function count(nest: Nest, path: readonly Attempt[]): void {
  for (const [depth, { reached, reachedByCall }] of path.entries()) {
    const level = nest[depth] as Level;
    if (!reached.has(nest)) level.attempts += 1;
    if (!reachedByCall.has(nest)) level.calls += 1;
    reached.add(nest);
    reachedByCall.add(nest);
  }
}

/** Has a composition look anew at how each of its layers is entered. */
function restage({ kind, target }: NamedEntry): void {
  const composition = kind === "compose" ? (target.deref() as { restage?(): void } | undefined) : undefined;
  composition?.restage?.();
}
