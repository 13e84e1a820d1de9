import { ask, isOwnFault } from "./classify.ts";
import type { FailoverVerdict } from "./hedge-options.ts";

/**
 * "stop" for what another attempt would only repeat, or come too late for: a 4xx that is neither 408 nor 429, an abort,
 * a deadline that leaves not enough time. "next" for the rest, also for what a breaker or limit of ours refused: that of
 * another target may not. Reads the error and its causes, as `classifyError` does.
 */
export function classifyFailover(error: unknown): FailoverVerdict {
  const isLast = ask(error, ({ name, code }, status) => {
    if (name === "AbortError" || code === "DEADLINE") return true;
    return status === undefined ? undefined : isOwnFault(status);
  });
  return isLast === true ? "stop" : "next";
}
