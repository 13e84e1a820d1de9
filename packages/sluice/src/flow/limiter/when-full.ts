/** What becomes of a call for which there is no room in line. */
import { checkOneOf } from "../../internal/check.ts";
import type { LimiterRunOptions, LimiterWhenFull } from "./options.ts";

/** The same for all calls, or asked for each. */
export type WhenFull = LimiterWhenFull | ((options: LimiterRunOptions) => LimiterWhenFull);

const CHOICES = ["reject", "wait", "drop-newest", "drop-oldest", "caller-runs"] as const;

export function checkWhenFull(whenFull: WhenFull): WhenFull {
  return typeof whenFull === "function" ? whenFull : checkOneOf("whenFull", whenFull, CHOICES);
}

/** For one call. Throws what is thrown instead of an answer, or for one that is none. */
export function choose(whenFull: WhenFull, options: LimiterRunOptions): LimiterWhenFull {
  return typeof whenFull === "function" ? checkOneOf("whenFull", whenFull(options), CHOICES) : whenFull;
}
