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

  /** For the rest of what runs now, such as a promise reaction, and for what it starts. */
  enter(value: T): void {
    this.#storage ??= openStorage();
    this.#storage?.enterWith(value);
  }

  get(): T | undefined {
    return this.#storage?.getStore();
  }
}

/** The part of `AsyncLocalStorage` that is used. */
interface Storage<T> {
  run<R>(value: T, fn: () => R): R;
  enterWith(value: T): void;
  getStore(): T | undefined;
}

/** Before Node 24 the first use of a context made every promise of the process several times slower. */
export function isContextFree(): boolean {
  return Number.parseInt((globalThis as Runtime).process?.versions?.node ?? "0", 10) >= 24;
}

interface Runtime {
  readonly process?: {
    readonly versions?: { readonly node?: string | undefined } | undefined;
    getBuiltinModule?(id: "node:async_hooks"): { readonly AsyncLocalStorage: new () => unknown } | undefined;
  };
}

function openStorage<T>(): Storage<T> | undefined {
  const hooks = (globalThis as Runtime).process?.getBuiltinModule?.("node:async_hooks");
  return hooks === undefined ? undefined : (new hooks.AsyncLocalStorage() as Storage<T>);
}
