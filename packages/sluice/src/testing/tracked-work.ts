/** Work outside that a clock was told of: time stands still until it has ended. */
import { turn } from "./turn.ts";

export class TrackedWork {
  readonly #going = new Set<Promise<unknown>>();

  /** A failure stays the caller's, neither hidden nor doubled. */
  track<T>(work: PromiseLike<T>): Promise<T> {
    const going = Promise.resolve(work); // what is no promise of the runtime may have no `finally`
    this.#going.add(going);
    return going.finally(() => this.#going.delete(going));
  }

  /** Until all that can go on without time has done so. */
  async settle(): Promise<void> {
    do {
      await Promise.allSettled(this.#going);
      await turn();
    } while (this.#going.size > 0);
  }
}
