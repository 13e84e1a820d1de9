/**
 * A signal that aborts with the first of others, until it is released. Unlike `AbortSignal.any` it leaves nothing
 * behind on a signal that outlives it, and adds no listener where somebody else watches already.
 */
import { Watcher } from "./abort.ts";

export class EitherSignal {
  readonly #controller = new AbortController();
  #links: Link[] = [];

  /** If one has aborted already, so has this. */
  constructor(...sources: readonly AbortSignal[]) {
    const aborted = sources.find((source) => source.aborted);
    if (aborted === undefined) this.#links = sources.map((source) => new Link(this.#controller, source));
    else this.abort(aborted.reason);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** By none of the others. */
  abort(reason: unknown): void {
    this.release();
    this.#controller.abort(reason);
  }

  /** The signal stays as it is from now on, but for `abort`. */
  release(): void {
    for (const link of this.#links) link.unwatch();
  }
}

class Link extends Watcher {
  readonly #controller: AbortController;

  constructor(controller: AbortController, source: AbortSignal) {
    super();
    this.#controller = controller;
    this.watch(source);
  }

  override onAbort(reason: unknown): void {
    this.#controller.abort(reason);
  }
}
