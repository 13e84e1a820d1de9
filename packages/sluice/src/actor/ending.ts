import { checkFunction } from "../internal/check.ts";
import { Emitter } from "../internal/emitter.ts";
import type { ActorEnd } from "./actor-options.ts";

/** How an actor ends, and who is to hear of it. */
export class Ending {
  // I1  each listener hears of it once, after `isOver` has become true
  isOver = false;
  #end: ActorEnd = { reason: undefined, why: "closed" };
  #listeners: Emitter<ActorEnd> | undefined;

  /** Whether it ends since it was closed, and so has handled all that it had accepted. */
  get isGentle(): boolean {
    return this.#end.why === "closed";
  }

  get isWatched(): boolean {
    return this.#listeners !== undefined && this.#listeners.size > 0;
  }

  watch(listener: (end: ActorEnd) => void): () => void {
    checkFunction("listener", listener);
    if (!this.isOver) return (this.#listeners ??= new Emitter()).add(listener);
    let isWatching = true;
    void Promise.resolve().then(() => isWatching && listener(this.#end));
    return () => void (isWatching = false);
  }

  /** The first that isn't gentle stays. */
  because(end: ActorEnd): void {
    if (this.isGentle) this.#end = end;
  }

  tell(): void {
    this.isOver = true;
    this.#listeners?.emit(this.#end);
  }
}
