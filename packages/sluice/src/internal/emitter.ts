/** Who wants to hear of something. Nobody hears of anything from a listener that throws but the runtime. */
export class Emitter<T> {
  // I1  each listener gets each event that is emitted while it is on the list, in the order of joining
  readonly #entries = new Set<{ readonly listener: (event: T) => void }>();

  get size(): number {
    return this.#entries.size;
  }

  /** Returns how to stop. */
  add(listener: (event: T) => void): () => void {
    if (typeof listener !== "function") throw new TypeError(`listener must be a function, got ${typeof listener}`);
    const entry = { listener }; // an object of its own, so that one function may be added twice
    this.#entries.add(entry);
    return () => void this.#entries.delete(entry);
  }

  /** A listener that throws harms neither the caller nor the others: its error is an unhandled rejection. */
  emit(event: T): void {
    for (const entry of [...this.#entries]) {
      if (!this.#entries.has(entry)) continue; // one before it took it off
      try {
        entry.listener(event);
      } catch (error) {
        void Promise.reject(error);
      }
    }
  }
}
