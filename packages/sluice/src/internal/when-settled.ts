/**
 * `await` for what must cost no async frame: calls one of the two, once, in the turn in which `await` would go on.
 * It goes by the promise itself, as `await` does, and not by a `then` that somebody may have put on it, since one that
 * calls back twice would give a slot back twice.
 */
export function whenSettled<T, R>(
  result: T | PromiseLike<T>,
  onFulfilled: (value: T) => R | PromiseLike<R>,
  onRejected?: (reason: unknown) => R | PromiseLike<R>,
): Promise<R> {
  return then.call(Promise.resolve<T | PromiseLike<T>>(result), onFulfilled as Settled, onRejected) as Promise<R>;
}

/** As `await` sees it: a function may be one, too. */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as Partial<PromiseLike<unknown>> | null | undefined)?.then === "function";
}

type Settled = (value: unknown) => unknown;

// oxlint-disable-next-line typescript/unbound-method -- bound at each call
const { then } = Promise.prototype;
