/** An `AbortController` that knows how many listeners its signal has, in any runtime. */
export class CountingController {
  readonly #controller = new AbortController();
  readonly #listeners = new Map<unknown, { readonly once: boolean }>();
  #most = 0;

  constructor() {
    const { signal } = this;
    const [add, remove] = [signal.addEventListener.bind(signal), signal.removeEventListener.bind(signal)];
    signal.addEventListener = (...args: Parameters<typeof add>): void => {
      const [type, listener, options] = args;
      add(...args);
      if (type !== "abort" || listener === null) return;
      this.#listeners.set(listener, { once: typeof options === "object" && options.once === true });
      this.#most = Math.max(this.#most, this.listeners);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>): void => {
      const [type, listener] = args;
      remove(...args);
      if (type === "abort") this.#listeners.delete(listener);
    };
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Now. What listened once is gone after the abort. */
  get listeners(): number {
    const all = [...this.#listeners.values()];
    return all.filter(({ once }) => !(once && this.signal.aborted)).length;
  }

  /** The most there have ever been at a time. */
  get most(): number {
    return this.#most;
  }

  abort(reason?: unknown): void {
    this.#controller.abort(reason);
  }
}
