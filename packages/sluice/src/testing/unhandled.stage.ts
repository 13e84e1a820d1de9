import { setImmediate as turn } from "node:timers/promises";

/** What reaches the runtime as an unhandled rejection while `act` goes on, and nobody else. */
export async function unhandledIn(act: () => Promise<unknown>): Promise<unknown[]> {
  const listeners = process.rawListeners("unhandledRejection") as NodeJS.UnhandledRejectionListener[];
  const seen: unknown[] = [];
  process.removeAllListeners("unhandledRejection").on("unhandledRejection", (reason) => seen.push(reason));
  try {
    await act();
    await turn();
  } finally {
    process.removeAllListeners("unhandledRejection");
    for (const listener of listeners) process.on("unhandledRejection", listener);
  }
  return seen;
}
