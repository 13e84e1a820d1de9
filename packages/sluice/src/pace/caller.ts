/** Who waits for the result of a run that others may have asked for too. */
export interface Caller<R> {
  resolve(value: R): void;
  reject(reason: unknown): void;
}

/** What becomes of a call whose place a newer one has taken: it gets the newer one's result, or a `SupersededError`. */
export type WhenSuperseded = "join" | "reject";

export function rejectAll(callers: readonly Caller<never>[], reason: unknown): void {
  for (const caller of callers) caller.reject(reason);
}
