/** How many calls come of a fan-out that runs in a branch of another: nobody draws them, and they multiply. */
import { AsyncContext } from "../internal/async-context.ts";
import { probe } from "../internal/probe.ts";

export class Width {
  /** The number of branches, times that of each fan-out around it. */
  product = 0;
  /** Its branches, and in place of each that fanned out itself the calls of those. */
  calls = 0;
  #around: Place | undefined;

  /** For the start of a fan-out. */
  open(branches: number): void {
    this.#around = context.get();
    this.product = branches * (this.#around?.width.product ?? 1);
    this.calls = branches;
    probe?.fannedOut(this.product, this.#depth);
    if (branches === 0) return;
    let added = branches;
    for (let place = this.#around; place !== undefined; place = place.width.#around) {
      if (!place.hasFannedOut) added -= 1; // it is a call no longer: those it makes are
      place.hasFannedOut = true;
      place.width.calls += added;
    }
  }

  get #depth(): number {
    return this.#around === undefined ? 1 : this.#around.width.#depth + 1;
  }

  /** Calls a branch. */
  within<T>(fn: () => T): T {
    return context.run({ width: this, hasFannedOut: false }, fn);
  }
}

/** A branch, for what runs in it. */
interface Place {
  readonly width: Width;
  hasFannedOut: boolean;
}

const context = new AsyncContext<Place>();
