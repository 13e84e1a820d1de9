/** What one caller gets of a promise that others wait for as well: its outcome, unless the caller leaves before. */
import { Watcher } from "../internal/abort.ts";
import { whenSettled } from "../internal/when-settled.ts";

/** Settles as `shared` does, or by the signal, if that comes first: then `onLeave` is called, once and in the same turn. */
export function followUntil<T>(
  shared: Promise<T>,
  signal: AbortSignal,
  onLeave: (reason: unknown) => void,
): Promise<T> {
  return new Promise((resolve, reject) => new Follower(shared, resolve, reject, onLeave).heed(signal));
}

export class Follower<T> extends Watcher {
  // I1  it watches until the caller has its answer, which it has once
  readonly #leave: (reason: unknown) => void;
  #isOver = false;

  constructor(
    shared: Promise<T>,
    resolve: (value: T) => void,
    reject: (reason: unknown) => void,
    onLeave: (reason: unknown) => void,
  ) {
    super();
    this.#leave = (reason) => {
      reject(reason);
      onLeave(reason);
    };
    // Also for who leaves: a failure that nobody waits for any more is nobody's.
    void whenSettled(
      shared,
      (value) => this.end() && resolve(value),
      (error) => this.end() && reject(error),
    );
  }

  heed(signal: AbortSignal): void {
    try {
      if (signal.aborted) this.onAbort(signal.reason); // by what has just been called for it
      else if (!this.#isOver) this.watch(signal);
    } catch (error) {
      this.onAbort(error); // the signal is foreign code
    }
  }

  override onAbort(reason: unknown): void {
    if (this.end()) this.#leave(reason);
  }

  /** Whether it wasn't over before. */
  end(): boolean {
    if (this.#isOver) return false;
    this.unwatch();
    return (this.#isOver = true);
  }
}
