/**
 * What the end of each child means for its group: whether the others are still wanted, and what `join` gives. These are
 * the usual ones; one of your own is an object with two methods. A joiner serves one group.
 */
import { checkInteger, wrongType } from "../internal/check.ts";

/** `cancelled`: ended by a signal, and rejected with its reason or with an `AbortError`. That is no failure. */
export type TaskOutcome<T> =
  | { readonly status: "fulfilled"; readonly value: T }
  | { readonly status: "rejected" | "cancelled"; readonly reason: unknown };

export interface Joiner<T, R> {
  /**
   * Called as each child ends; `index` counts them in the order of their start. True when the group needs no more of
   * them: those that still run are cancelled, by the failure if this was one, and nothing is told of them any more.
   */
  onOutcome(outcome: TaskOutcome<T>, index: number): boolean;
  /** Called once, when all have ended and nobody has cancelled the group from outside: what `join` gives or throws. */
  result(): R;
}

/** The first failure cancels the others, and `join` throws it as it is. Values are for the promises of the children. */
export function failFast(): Joiner<unknown, void> {
  let failure: { readonly reason: unknown } | undefined;
  return {
    onOutcome(outcome) {
      if (outcome.status === "rejected") failure = outcome;
      return failure !== undefined;
    },
    result() {
      if (failure !== undefined) throw failure.reason;
    },
  };
}

/**
 * Lets all of them end. Gives the values in the order of start, or throws an `AggregateError` of all failures in that
 * order, of one as well.
 */
export function collectAll<T>(): Joiner<T, T[]> {
  const [values, failures] = [new InOrder<T>(), new InOrder<unknown>()];
  return {
    onOutcome(outcome, index) {
      if (outcome.status === "fulfilled") values.add(index, outcome.value);
      else if (outcome.status === "rejected") failures.add(index, outcome.reason);
      return false;
    },
    result() {
      if (failures.size > 0) throw new AggregateError(failures.all(), `${failures.size} of the tasks failed`);
      return values.all();
    },
  };
}

/** Lets all of them end, and gives each one's outcome in the order of start: a failure is a value. */
export function settleAll<T>(): Joiner<T, TaskOutcome<T>[]> {
  const outcomes = new InOrder<TaskOutcome<T>>();
  return {
    onOutcome(outcome, index) {
      outcomes.add(index, outcome);
      return false;
    },
    result: () => outcomes.all(),
  };
}

/**
 * The first success cancels the others and is what `join` gives. Without one: an `AggregateError` of the failures in the
 * order of start.
 */
export function firstSuccess<T>(): Joiner<T, T> {
  const one = quorum<T>(1);
  return { onOutcome: (outcome, index) => one.onOutcome(outcome, index), result: () => one.result()[0] as T };
}

/**
 * The first to succeed or fail cancels the others and is what `join` gives or throws. Without one: an `AggregateError`
 * of none.
 */
export function firstSettled<T>(): Joiner<T, T> {
  let first: TaskOutcome<T> | undefined;
  return {
    onOutcome(outcome) {
      if (outcome.status !== "cancelled") first = outcome;
      return first !== undefined;
    },
    result() {
      if (first === undefined) throw new AggregateError([], "no task has settled");
      if (first.status !== "fulfilled") throw first.reason;
      return first.value;
    },
  };
}

/**
 * As soon as `count`, an integer >= 1, have succeeded, the others are cancelled; gives those values in the order of
 * start. With fewer: an `AggregateError` of the failures in that order.
 */
export function quorum<T>(count: number): Joiner<T, T[]> {
  checkInteger("count", count, { min: 1 });
  const [values, failures] = [new InOrder<T>(), new InOrder<unknown>()];
  return {
    onOutcome(outcome, index) {
      if (outcome.status === "fulfilled") values.add(index, outcome.value);
      else if (outcome.status === "rejected") failures.add(index, outcome.reason);
      return values.size === count;
    },
    result() {
      if (values.size === count) return values.all();
      throw new AggregateError(failures.all(), `${values.size} of the tasks succeeded, ${count} were needed`);
    },
  };
}

/** What came in any order, given back in the order of start. */
class InOrder<T> {
  readonly #entries: (readonly [index: number, value: T])[] = [];

  get size(): number {
    return this.#entries.length;
  }

  add(index: number, value: T): void {
    this.#entries.push([index, value]);
  }

  all(): T[] {
    return this.#entries.toSorted(([a], [b]) => a - b).map(([, value]) => value);
  }
}

const claimed = new WeakSet<object>();

/** For a group: it must be nobody else's. */
export function claim<T, R>(joiner: Joiner<T, R>): Joiner<T, R> {
  if (typeof joiner?.onOutcome !== "function" || typeof joiner.result !== "function")
    throw wrongType("joiner", joiner, "an object with onOutcome and result");
  if (claimed.has(joiner)) throw new TypeError("joiner must be a new one for each group, got one of another group");
  claimed.add(joiner);
  return joiner;
}
