import { type CircuitOutcome, classifyError } from "./classify.ts";

/** What an outcome says about the dependency's load. An ignored one says nothing, its latency included. */
export type LoadVerdict = "success" | "overload" | "ignore";

/**
 * "overload" for a rejection after which trying again may help (`classifyError`): HTTP 429, 502, 503 and 504, timeouts,
 * refused and broken connections. Every other rejection is ignored, since a quick failure is no sign of health.
 */
export function classifyLoad(outcome: CircuitOutcome): LoadVerdict {
  if (outcome.status === "fulfilled") return "success";
  return classifyError(outcome.reason) === "retry" ? "overload" : "ignore";
}
