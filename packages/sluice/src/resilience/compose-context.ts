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
    for (const source of [around, context]) {
      for (const key of keysOf(source)) if (!(key in Merged.prototype)) this.#add(key, source);
    }
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

  #add(key: string, source: RunContext): void {
    const get = (): unknown => source[key as keyof RunContext];
    Object.defineProperty(this, key, { get, enumerable: true, configurable: true });
  }
}

function addsNothing(context: RunContext): boolean {
  return context === NOTHING || keysOf(context).every((key) => key === "signal");
}

const gettersByClass = new WeakMap<object, readonly string[]>();

/** Its own properties, and the getters of its class. */
function keysOf(context: object): readonly string[] {
  const own = Object.keys(context);
  const prototype = Object.getPrototypeOf(context) as object | null;
  if (prototype === null || prototype === Object.prototype) return own;
  let getters = gettersByClass.get(prototype);
  if (getters === undefined) gettersByClass.set(prototype, (getters = gettersOf(prototype)));
  return own.length === 0 ? getters : [...getters, ...own];
}

function gettersOf(prototype: object): readonly string[] {
  const above = Object.getPrototypeOf(prototype) as object | null;
  const inherited = above === null || above === Object.prototype ? [] : gettersOf(above);
  const own = Object.entries(Object.getOwnPropertyDescriptors(prototype)).filter(([, each]) => each.get !== undefined);
  return [...inherited, ...own.map(([key]) => key)];
}
