/**
 * Who is doing something: an async context and what descends from it. Only entered while `enable` is on, and only where
 * the runtime has async context; elsewhere nobody has an identity.
 */
import { AsyncContext } from "../internal/async-context.ts";

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

const context = new AsyncContext<Activity | undefined>();

export function currentActivity(): Activity | undefined {
  return context.get();
}

/** Calls `fn` as `activity`, or as nobody. */
export function inActivity<T>(activity: Activity | undefined, fn: () => T): T {
  return context.run(activity, fn);
}
