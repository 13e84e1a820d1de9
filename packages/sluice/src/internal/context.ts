/**
 * Async context, where the runtime has it: it is never imported, since not every runtime knows the module.
 */
export interface AsyncContext<T> {
  getStore(): T | undefined;
  run<R>(store: T, fn: () => R): R;
  enterWith(store: T): void;
}

/** A context of one's own, or undefined. */
export function asyncContext<T>(): AsyncContext<T> | undefined {
  const hooks = runtime?.getBuiltinModule?.("node:async_hooks");
  return hooks === undefined ? undefined : new hooks.AsyncLocalStorage<T>();
}

/** Before Node 24 the first use of a context made every promise of the process several times slower. */
export function isContextFree(): boolean {
  return Number.parseInt(runtime?.versions?.node ?? "0", 10) >= 24;
}

interface Runtime {
  readonly versions?: { readonly node?: string | undefined } | undefined;
  getBuiltinModule?(id: string): { readonly AsyncLocalStorage: new <T>() => AsyncContext<T> } | undefined;
}

const runtime = (globalThis as { readonly process?: Runtime }).process;
