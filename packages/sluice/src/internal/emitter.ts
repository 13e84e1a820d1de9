/** Who wants to hear of something. Nobody hears of anything from a listener that throws but the runtime. */
import { checkFunction } from "./check.ts";
import { tell } from "./tell.ts";

export class Emitter<T> {
  // I1  each listener gets each event that is emitted while it is on the list, in the order of joining
  #entries: readonly Entry<T>[] = [];

  get size(): number {
    return this.#entries.length;
  }

  /** Returns how to stop. One function may be added twice. */
  add(listener: (event: T) => void): () => void {
    checkFunction("listener", listener);
    const entry = { listener };
    this.#entries = [...this.#entries, entry];
    return () => void (this.#entries = this.#entries.filter((each) => each !== entry));
  }

  /** A listener that throws harms neither the caller nor the others: its error is an unhandled rejection. */
  emit(event: T): void {
    for (const entry of this.#entries) {
      if (!this.#entries.includes(entry)) continue; // one before it took it off
      tell(entry.listener, event);
    }
  }
}

interface Entry<T> {
  readonly listener: (event: T) => void;
}
