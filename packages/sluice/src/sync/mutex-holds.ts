/**
 * Which mutexes the function that runs now was called under, told by the runtime's async context (Node, Deno, Bun): a
 * browser has none, and there nothing is known.
 */
import { lenderOf, type Lender, type Permit } from "./permit.ts";

/** A guard, and what was held around it. */
interface Hold {
  readonly guard: Permit;
  readonly around: Hold | undefined;
}

interface Context {
  getStore(): Hold | undefined;
  run<T>(hold: Hold, fn: () => T): T;
}

interface Runtime {
  readonly process?: {
    getBuiltinModule?(id: "node:async_hooks"): { readonly AsyncLocalStorage: new () => Context } | undefined;
  };
}

let context: Context | undefined;

/** To be called before anything is held: a context that nobody needs costs each promise a little. */
export function followHolds(): void {
  const hooks = (globalThis as Runtime).process?.getBuiltinModule?.("node:async_hooks");
  if (hooks !== undefined) context ??= new hooks.AsyncLocalStorage();
}

/** Calls `fn`, and knows from within that `guard` is held around it. */
export function holding<T>(guard: Permit, fn: () => T): T {
  return context === undefined ? fn() : context.run({ guard, around: context.getStore() }, fn);
}

/** Whether who asks runs under a guard of this lender that hasn't been given back. */
export function holds(lender: Lender): boolean {
  for (let hold = context?.getStore(); hold !== undefined; hold = hold.around) {
    if (lenderOf(hold.guard) === lender) return true;
  }
  return false;
}
