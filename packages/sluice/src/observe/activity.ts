/**
 * Who is doing something: an async context and what descends from it. Only entered while `enable` is on, and only where
 * the runtime has async context; elsewhere nobody has an identity.
 */
export class Activity {
  readonly parent: Activity | undefined;

  constructor(parent: Activity | undefined) {
    this.parent = parent;
  }

  /** Whether `other` is this one or one that this one descends from. */
  isWithin(other: Activity): boolean {
    return this === other || this.parent?.isWithin(other) === true;
  }
}

interface AsyncStorage {
  run<T>(store: Activity, fn: () => T): T;
  getStore(): Activity | undefined;
}

interface Builtins {
  getBuiltinModule?(id: "node:async_hooks"): { readonly AsyncLocalStorage: new () => AsyncStorage } | undefined;
}

let storage: AsyncStorage | undefined;

/** Makes identities possible where they are. Called by who enables: an unused storage must not exist. */
export function openActivities(): void {
  const { process } = globalThis as { readonly process?: Builtins };
  const hooks = process?.getBuiltinModule?.("node:async_hooks");
  if (hooks !== undefined) storage ??= new hooks.AsyncLocalStorage();
}

export function currentActivity(): Activity | undefined {
  return storage?.getStore();
}

/** Calls `fn` as `activity`. */
export function inActivity<T>(activity: Activity, fn: () => T): T {
  return storage === undefined ? fn() : storage.run(activity, fn);
}
