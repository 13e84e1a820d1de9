/**
 * A signal that aborts with the first of two others, until it is released. Unlike `AbortSignal.any` it leaves nothing
 * behind on a signal that outlives it, and adds no listener where somebody else watches already.
 */
import { Watcher } from "./abort.ts";

export class EitherSignal {
  readonly #controller = new AbortController();
  readonly #first = new Link(this.#controller);
  readonly #second = new Link(this.#controller);

  /** Neither may have aborted yet. */
  constructor(first: AbortSignal, second: AbortSignal) {
    this.#first.watch(first);
    this.#second.watch(second);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The signal stays as it is from now on. */
  release(): void {
    this.#first.unwatch();
    this.#second.unwatch();
  }
}

class Link extends Watcher {
  readonly #controller: AbortController;

  constructor(controller: AbortController) {
    super();
    this.#controller = controller;
  }

  override onAbort(reason: unknown): void {
    this.#controller.abort(reason);
  }
}
