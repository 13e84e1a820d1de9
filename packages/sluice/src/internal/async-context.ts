/**
 * A value that follows a call through all it awaits, where the runtime can do that: Node, Deno and Bun. Elsewhere `run`
 * just calls, and `get` knows nothing. Nothing is made before the first `run`.
 */
export class AsyncContext<T> {
  #storage: Storage<T> | undefined;

  /** Calls `fn`: in there, and in what it starts, `get` says `value`. */
  run<R>(value: T, fn: () => R): R {
    this.#storage ??= openStorage();
    return this.#storage === undefined ? fn() : this.#storage.run(value, fn);
  }

  get(): T | undefined {
    return this.#storage?.getStore();
  }
}

/** The part of `AsyncLocalStorage` that is used. */
interface Storage<T> {
  run<R>(value: T, fn: () => R): R;
  getStore(): T | undefined;
}

interface Runtime {
  readonly process?: {
    getBuiltinModule?(id: "node:async_hooks"): { readonly AsyncLocalStorage: new () => unknown } | undefined;
  };
}

function openStorage<T>(): Storage<T> | undefined {
  const hooks = (globalThis as Runtime).process?.getBuiltinModule?.("node:async_hooks");
  return hooks === undefined ? undefined : (new hooks.AsyncLocalStorage() as Storage<T>);
}
