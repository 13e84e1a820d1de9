/**
 * Which locks the function that runs now was called under, told by the runtime's async context (Node, Deno, Bun): a
 * browser has none, and there nothing is known.
 */

/** The guard of a lock, and what was held around it. */
interface Hold {
  readonly lock: object;
  readonly guard: { readonly isHeld: boolean };
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

/** Calls `fn`, and knows from within that this guard of `lock` is held around it. */
export function holding<T>(lock: object, guard: Hold["guard"], fn: () => T): T {
  return context === undefined ? fn() : context.run({ lock, guard, around: context.getStore() }, fn);
}

/** Whether who asks runs under a guard of this lock that hasn't been given back. */
export function holds(lock: object): boolean {
  for (let hold = context?.getStore(); hold !== undefined; hold = hold.around) {
    if (hold.lock === lock && hold.guard.isHeld) return true;
  }
  return false;
}
