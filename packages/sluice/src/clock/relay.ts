/** Hears of one signal's abort for a watcher of another, or for what hears of several. */
import { Watcher } from "../internal/abort.ts";

export class Relay extends Watcher {
  readonly #to: { onAbort(reason: unknown): void };

  constructor(to: { onAbort(reason: unknown): void }, signal: AbortSignal) {
    super();
    this.#to = to;
    this.watch(signal);
  }

  override onAbort(reason: unknown): void {
    this.#to.onAbort(reason);
  }
}
