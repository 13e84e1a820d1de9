/** What the attempts of a run failed with: the run itself rejects with the last error as it was, and not with a wrapper. */

/** As many errors are kept of a run, the latest. */
const MAX_KEPT = 20;

const byLast = new WeakMap<object, readonly unknown[]>();

/**
 * The errors of all attempts of the run that rejected with `error`, the oldest first, that one included; of a run of more
 * than 20 the latest 20. If several runs rejected with one object, those of the latest. An error of no retry, and what
 * is no object, has only itself.
 */
export function attemptErrors(error: unknown): readonly unknown[] {
  return byLast.get(error as object) ?? [error];
}

/** For a run that goes on. */
export function keepError(errors: unknown[], error: unknown): void {
  if (errors.push(error) > MAX_KEPT) errors.shift();
}

/** For a run that rejects with `last`. */
export function recordErrors(last: unknown, errors: readonly unknown[]): void {
  if (typeof last === "object" && last !== null) byLast.set(last, errors);
}
