/** Takes a dependency out of use by hand, while it is moved, repaired or not to be paid for. */
import { dispose } from "../internal/dispose.ts";
import type { CircuitBreaker, CircuitMode } from "./circuit-breaker.ts";

/** Keeps its breaker isolated until it is released; to release it twice is the same as once. */
export interface CircuitIsolation extends Disposable {
  release(): void;
}

/**
 * Turns every call of the breaker away, with a `retryAfterMs` of `Infinity`, until this handle and every other one have
 * been released: whoever has a reason of their own needs to know of no other. Then it has the mode that it had, unless
 * somebody has given it another meanwhile.
 */
export function isolate(breaker: CircuitBreaker): CircuitIsolation {
  return new Isolation(breaker);
}

/** By breaker: the handles that are out, and the mode to give back. */
const isolations = new WeakMap<CircuitBreaker, { mode: CircuitMode; readonly handles: Set<Isolation> }>();

class Isolation implements CircuitIsolation {
  readonly #breaker: CircuitBreaker;

  constructor(breaker: CircuitBreaker) {
    this.#breaker = breaker;
    const { mode } = breaker;
    const known = isolations.get(breaker);
    if (known === undefined) isolations.set(breaker, { mode, handles: new Set([this]) });
    else {
      known.handles.add(this);
      if (mode !== "isolated") known.mode = mode; // somebody has given it another meanwhile
    }
    breaker.mode = "isolated";
  }

  release(): void {
    const known = isolations.get(this.#breaker);
    if (known?.handles.delete(this) !== true || known.handles.size > 0) return;
    isolations.delete(this.#breaker);
    if (this.#breaker.mode === "isolated") this.#breaker.mode = known.mode;
  }

  [dispose](): void {
    this.release();
  }
}
