/**
 * Who is doing something: an async context and what descends from it. Only entered while `enable` is on, and only where
 * the runtime has async context; elsewhere nobody has an identity.
 */
import { AsyncContext } from "../internal/async-context.ts";

export class Activity {
  // I1  all above it went on when it began, or when another began within it: who starts the next of his kind for ever
  //     leaves no chain behind, be it before or after his own end
  parent: Activity | undefined;
  isOver = false;

  /** Within who runs now. */
  constructor() {
    this.parent = unlessOver(context.get());
    for (let above = this.parent; above !== undefined; above = above.parent) above.parent = unlessOver(above.parent);
  }
}

/** `activity`, or the next above it that goes on. */
function unlessOver(activity: Activity | undefined): Activity | undefined {
  let each = activity;
  while (each?.isOver === true) each = each.parent;
  return each;
}

const context = new AsyncContext<Activity | undefined>();

export function currentActivity(): Activity | undefined {
  return context.get();
}

/** Calls `fn` as `activity`, or as nobody. */
export function inActivity<T>(activity: Activity | undefined, fn: () => T): T {
  return context.run(activity, fn);
}
