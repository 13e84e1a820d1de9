/**
 * Which load waits for which, told by the runtime's async context: a load that would wait for itself, also by way of
 * others, is refused rather than never settled. In Node before 24 a context would slow down every promise of the
 * process, and browsers have none: there nothing is known.
 */
import { AsyncContext, isContextFree } from "../internal/async-context.ts";
import { keepModel } from "../internal/model.ts";

/** A load that is under way. It keeps nothing of the load, since whatever was begun in there keeps it. */
export class LoadMark {
  // I1  no load waits for itself, by way of however many others
  isOver = false;
  /** Loads that wait for this one, and how many times. */
  #askers: Map<LoadMark, number> | undefined;
  /** Else it waits for none, and need not be looked for. */
  #hasAsked = false;

  /** Calls `fn` as the load. */
  run<T>(fn: () => T): T {
    isKnown ??= isContextFree();
    return isKnown ? context.run(this, fn) : fn();
  }

  /** `asker` waits for this load from now on. Whether it may: not if this load waits for it. */
  admit(asker: LoadMark | undefined): boolean {
    if (asker === undefined) return true;
    if (asker === this || (this.#hasAsked && asker.#isAwaitedBy(this))) return false;
    asker.#hasAsked = true;
    this.#askers ??= new Map();
    this.#askers.set(asker, (this.#askers.get(asker) ?? 0) + 1);
    return true;
  }

  /** `asker`, which was admitted, waits no more. */
  dismiss(asker: LoadMark | undefined): void {
    if (asker === undefined) return;
    const left = (this.#askers?.get(asker) ?? 1) - 1;
    if (left > 0) this.#askers?.set(asker, left);
    else this.#askers?.delete(asker);
  }

  /** Nobody waits any more, though it goes on. */
  dismissAll(): void {
    this.#askers = undefined;
  }

  /** Each is looked at once, however many ways lead to it, and in no call within a call: the way may be long. */
  #isAwaitedBy(other: LoadMark): boolean {
    const found = new Set<LoadMark>([this]);
    for (const mark of found) {
      if (mark === other) return true;
      for (const asker of mark.#askers?.keys() ?? []) if (!asker.isOver) found.add(asker);
    }
    return false;
  }
}

/** The load in which this runs, if that is known and it hasn't ended. */
export function loadAround(): LoadMark | undefined {
  const mark = context.get();
  return mark?.isOver === false ? mark : undefined;
}

const context = new AsyncContext<LoadMark>();
let isKnown: boolean | undefined;

keepModel(new LoadMark());
