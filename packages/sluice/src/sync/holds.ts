/**
 * Which locks the function that runs now was called under, told by the runtime's async context (Node, Deno, Bun): a
 * browser has none, and there nothing is known.
 */
import { AsyncContext } from "../internal/async-context.ts";

/** The guard of a lock, and what was held around it. */
interface Hold {
  readonly lock: object;
  readonly guard: { readonly isHeld: boolean };
  readonly around: Hold | undefined;
}

const context = new AsyncContext<Hold>();

/** Calls `fn`, and knows from within that this guard of `lock` is held around it. */
export function holding<T>(lock: object, guard: Hold["guard"], fn: () => T): T {
  return context.run({ lock, guard, around: context.get() }, fn);
}

/** Whether who asks runs under a guard of this lock that hasn't been given back. */
export function holds(lock: object): boolean {
  for (let hold = context.get(); hold !== undefined; hold = hold.around) {
    if (hold.lock === lock && hold.guard.isHeld) return true;
  }
  return false;
}
