/** What the tests of groups are written with. */
import { setImmediate as turn } from "node:timers/promises";

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

/** What reaches the runtime as an unhandled rejection while `body` runs. */
export async function unhandledIn(body: () => Promise<unknown>): Promise<unknown[]> {
  const listeners = process.rawListeners("unhandledRejection") as NodeJS.UnhandledRejectionListener[];
  const seen: unknown[] = [];
  process.removeAllListeners("unhandledRejection").on("unhandledRejection", (reason) => seen.push(reason));
  try {
    await body();
    await turn();
  } finally {
    process.removeAllListeners("unhandledRejection");
    for (const listener of listeners) process.on("unhandledRejection", listener);
  }
  return seen;
}
