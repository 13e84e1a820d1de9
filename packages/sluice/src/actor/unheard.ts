/** Failures that nobody is there to hear of. */
import { notice } from "../internal/probe.ts";

/** The runtime sees it as an unhandled rejection. */
export function tellNobody(actor: object, failure: unknown): void {
  notice?.("failed", actor, failure);
  void Promise.reject(failure);
}

/** For what the actor can do without: the clock is foreign code, and may throw. */
export function attempt(actor: object, act: () => void): void {
  try {
    act();
  } catch (error) {
    tellNobody(actor, error);
  }
}
