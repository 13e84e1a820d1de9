/** Who wants to hear that jobs of a queue may be claimable. */
export class Listeners {
  readonly #listeners = new Set<{ readonly listener: (queue: string) => void }>();

  /** Returns how to stop. */
  add(listener: (queue: string) => void): () => void {
    const entry = { listener }; // an object of its own, so that one function may be added twice
    this.#listeners.add(entry);
    return () => void this.#listeners.delete(entry);
  }

  /** Once for each queue. A listener that throws harms neither the caller nor the others. */
  tell(queues: Iterable<string>): void {
    if (this.#listeners.size === 0) return;
    for (const queue of new Set(queues)) {
      for (const { listener } of this.#listeners) {
        try {
          listener(queue);
        } catch (error) {
          void Promise.reject(error);
        }
      }
    }
  }
}
