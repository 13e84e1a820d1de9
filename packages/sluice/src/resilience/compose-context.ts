/** What the layers of a composed call add to the context of its function, in one object. */
import type { RunContext } from "../policy.ts";

/** Of a call without a signal, before any layer. */
export const NOTHING: RunContext = Object.freeze({ signal: undefined });

/** For all that is said here, a context is some of these and maybe more. */
interface AnyContext extends RunContext {
  readonly attempt?: number | undefined;
  readonly idempotencyKey?: string | undefined;
}

/** What a layer handed on, with what those around it have besides a signal. */
export function mergeContexts(around: RunContext, context: RunContext): RunContext {
  return addsNothing(around) ? context : new Merged(around, context);
}

/** Nothing is read before it is asked for, since some is made only then. */
class Merged implements AnyContext {
  readonly #around: AnyContext;
  readonly #context: AnyContext;

  constructor(around: RunContext, context: RunContext) {
    this.#around = around;
    this.#context = context;
    this.#add(around);
    this.#add(context);
  }

  get signal(): AbortSignal | undefined {
    return this.#context.signal;
  }

  get attempt(): number | undefined {
    return this.#context.attempt ?? this.#around.attempt;
  }

  /** One for all that comes of one call. */
  get idempotencyKey(): string | undefined {
    return this.#around.idempotencyKey ?? this.#context.idempotencyKey;
  }

  #add(source: RunContext): void {
    for (const key in source) this.#hand(key, source);
    for (const key of gettersOf(source)) this.#hand(key, source);
  }

  #hand(key: string, source: RunContext): void {
    if (key in Merged.prototype) return;
    const get = (): unknown => source[key as keyof RunContext];
    Object.defineProperty(this, key, { get, enumerable: true, configurable: true });
  }
}

function addsNothing(context: RunContext): boolean {
  if (context === NOTHING) return true;
  for (const key in context) if (key !== "signal") return false; // makes no array, as asking for the keys would
  return gettersOf(context).length === 0;
}

const gettersByClass = new WeakMap<object, readonly string[]>([[Object.prototype, []]]);

/** Those of its class but `signal`, which no loop over its properties finds. */
function gettersOf(context: object): readonly string[] {
  const prototype = Object.getPrototypeOf(context) as object | null;
  if (prototype === null) return [];
  let getters = gettersByClass.get(prototype);
  if (getters === undefined) {
    const own = Object.entries(Object.getOwnPropertyDescriptors(prototype)).filter(
      ([key, each]) => each.get !== undefined && key !== "signal",
    );
    getters = [...gettersOf(prototype), ...own.map(([key]) => key)];
    gettersByClass.set(prototype, getters);
  }
  return getters;
}
