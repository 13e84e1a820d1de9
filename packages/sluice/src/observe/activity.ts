/**
 * Who is doing something: an async context and what descends from it. Only entered while `enable` is on, and only where
 * the runtime has async context; elsewhere nobody has an identity.
 */
import { AsyncContext } from "../internal/async-context.ts";

export class Activity {
  // I1  `parent` went on when this one began: who starts the next of his kind for ever leaves no chain behind
  readonly parent: Activity | undefined;
  isOver = false;

  /** Within who runs now. */
  constructor() {
    let parent = context.get();
    while (parent?.isOver === true) parent = parent.parent;
    this.parent = parent;
  }
}

/** Whether `activity` is `other`, or descends from it. */
export function isWithin(activity: Activity, other: Activity): boolean {
  let each: Activity | undefined = activity;
  while (each !== undefined && each !== other) each = each.parent;
  return each !== undefined;
}

const context = new AsyncContext<Activity | undefined>();

export function currentActivity(): Activity | undefined {
  return context.get();
}

/** Calls `fn` as `activity`, or as nobody. */
export function inActivity<T>(activity: Activity | undefined, fn: () => T): T {
  return context.run(activity, fn);
}
