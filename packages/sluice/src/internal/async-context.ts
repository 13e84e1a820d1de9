/**
 * A value that follows a call through all it awaits, where the runtime can do that: Node, Deno and Bun. Elsewhere `run`
 * just calls, and `get` knows nothing. Nothing is made before the first `run`.
 */
export class AsyncContext<T> {
  #hooks: Hooks | undefined;
  #storage: Storage<T> | undefined;

  /**
   * Calls `fn`: in there, and in what it starts, `get` says `value`. The resource puts the context back as it was;
   * `AsyncLocalStorage.run` enters the old value anew, which makes the context longer, and looking into it slower, for
   * all that the caller does after that.
   */
  run<R>(value: T, fn: () => R): R {
    const storage = this.#open();
    if (storage === undefined || this.#hooks === undefined) return fn();
    return new this.#hooks.AsyncResource("sluice").runInAsyncScope(() => {
      storage.enterWith(value);
      return fn();
    });
  }

  /** For the rest of what runs now, such as a promise reaction, and for what it starts. */
  enter(value: T): void {
    this.#open()?.enterWith(value);
  }

  get(): T | undefined {
    return this.#storage?.getStore();
  }

  #open(): Storage<T> | undefined {
    if (this.#storage !== undefined) return this.#storage;
    this.#hooks = (globalThis as Runtime).process?.getBuiltinModule?.("node:async_hooks");
    if (this.#hooks !== undefined) this.#storage = new this.#hooks.AsyncLocalStorage() as Storage<T>;
    return this.#storage;
  }
}

/** The part of `AsyncLocalStorage` that is used. */
interface Storage<T> {
  enterWith(value: T): void;
  getStore(): T | undefined;
}

interface Hooks {
  readonly AsyncLocalStorage: new () => unknown;
  readonly AsyncResource: new (type: string) => { runInAsyncScope<R>(fn: () => R): R };
}

export function hasAsyncContext(): boolean {
  return (globalThis as Runtime).process?.getBuiltinModule !== undefined;
}

/** Before Node 24 the first use of a context made every promise of the process several times slower. */
export function isContextFree(): boolean {
  return Number.parseInt((globalThis as Runtime).process?.versions?.node ?? "0", 10) >= 24;
}

interface Runtime {
  readonly process?: {
    readonly versions?: { readonly node?: string | undefined } | undefined;
    getBuiltinModule?(id: "node:async_hooks"): Hooks | undefined;
  };
}
