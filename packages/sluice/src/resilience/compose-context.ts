/** What the layers of a composed call add to the context of its function, in one object. */
import type { RunContext } from "../policy.ts";

/** Of a call without a signal, before any layer. */
export const NOTHING: RunContext = Object.freeze({ signal: undefined });

/** For all that is said here, a context is some of these and maybe more. */
interface AnyContext extends RunContext {
  readonly attempt?: number | undefined;
  readonly idempotencyKey?: string | undefined;
}

/** What an inner layer handed on, with what the outer ones have besides a signal. */
export function mergeContexts(outer: RunContext, inner: RunContext): RunContext {
  return outer === NOTHING || addsNothing(keysOf(outer)) ? inner : new Merged(outer, inner, inner);
}

/** What an inner layer has besides a signal, with what the outer ones handed on. */
export function addContext(outer: RunContext, inner: RunContext): RunContext {
  return new Merged(outer, inner, outer);
}

/** Nothing is read before it is asked for, since some is made only then. */
class Merged implements AnyContext {
  readonly #outer: AnyContext;
  readonly #inner: AnyContext;
  readonly #signalled: RunContext;

  constructor(outer: RunContext, inner: RunContext, signalled: RunContext) {
    this.#outer = outer;
    this.#inner = inner;
    this.#signalled = signalled;
    if (outer !== NOTHING) this.#add(outer);
    this.#add(inner);
  }

  get signal(): AbortSignal | undefined {
    return this.#signalled.signal;
  }

  get attempt(): number | undefined {
    return this.#inner.attempt ?? this.#outer.attempt;
  }

  /** One for all that comes of one call. */
  get idempotencyKey(): string | undefined {
    return this.#outer.idempotencyKey ?? this.#inner.idempotencyKey;
  }

  #add(source: RunContext): void {
    for (const key of keysOf(source)) {
      if (key in Merged.prototype) continue;
      const get = (): unknown => source[key as keyof RunContext];
      Object.defineProperty(this, key, { get, enumerable: true, configurable: true });
    }
  }
}

function addsNothing(keys: readonly string[]): boolean {
  return keys.length === 0 || (keys.length === 1 && keys[0] === "signal");
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
