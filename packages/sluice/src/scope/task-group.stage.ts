/** What the tests of groups are written with. */

/** Rejects when the signal aborts. */
export function ended(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}

export function outcomeOf(promise: PromiseLike<unknown>): {
  status: "pending" | "fulfilled" | "rejected";
  value: unknown;
} {
  const outcome: ReturnType<typeof outcomeOf> = { status: "pending", value: undefined };
  promise.then(
    (value) => Object.assign(outcome, { status: "fulfilled", value }),
    (value) => Object.assign(outcome, { status: "rejected", value }),
  );
  return outcome;
}
