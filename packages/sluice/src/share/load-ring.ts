/**
 * Which load waits for which, told by the runtime's async context: a load that would wait for itself, also by way of
 * others, is refused rather than never settled. In Node before 24 a context would slow down every promise of the
 * process, and browsers have none: there nothing is known.
 */
import { AsyncContext, isContextFree } from "../internal/async-context.ts";

/** A load that is under way. It keeps nothing of the load, since whatever was begun in there keeps it. */
export class LoadMark {
  // I1  no load waits for itself, by way of however many others
  isOver = false;
  #askers: Set<LoadMark> | undefined;

  /** Calls `fn` as the load. */
  run<T>(fn: () => T): T {
    isKnown ??= isContextFree();
    return isKnown ? context.run(this, fn) : fn();
  }

  /** Who runs now waits for this load, which begins, and so waits for none itself. */
  begin(): void {
    const asker = context.get();
    if (asker?.isOver === false) (this.#askers ??= new Set()).add(asker);
  }

  /** Who runs now will wait for this load: whether that would be for ever. */
  await(): boolean {
    const asker = context.get();
    if (asker === undefined || asker.isOver) return false;
    if (asker.#isAwaitedBy(this)) return true;
    (this.#askers ??= new Set()).add(asker);
    return false;
  }

  /** Each is looked at once, however many ways lead to it, and in no call within a call: the way may be long. */
  #isAwaitedBy(other: LoadMark): boolean {
    const found = new Set<LoadMark>([this]);
    for (const mark of found) {
      if (mark === other) return true;
      for (const asker of mark.#askers ?? []) if (!asker.isOver) found.add(asker);
    }
    return false;
  }
}

const context = new AsyncContext<LoadMark>();
let isKnown: boolean | undefined;
