/**
 * Controlled delay for a line of requests, after CoDel (RFC 8289) as Facebook uses it for servers, with its adaptive
 * LIFO (Ben Maurer, "Fail at Scale", ACM Queue 13/8, 2015). A line that empties now and then is a good one, and takes up
 * bursts: who joins may wait for `intervalMs`. One that has not been empty for so long is a standing one, in which all
 * wait for nothing but each other: who joins may wait for `targetMs` only, and the newest goes first, since the oldest
 * callers are those who have most likely given up.
 */
import { checkMs } from "../internal/check.ts";
import type { JoinTerms, LineDiscipline, LineRule } from "./adaptive-limiter-options.ts";

export interface CodelOptions {
  /** How long a call may wait in a standing line. At least 1. @default 5 */
  readonly targetMs?: number | undefined;
  /** How long a call may wait in any other line, and how long one is never empty before it is standing. At least 1. @default 100 */
  readonly intervalMs?: number | undefined;
  /** Who goes first in a standing line: the newest or, as in any other, the oldest. @default true */
  readonly newestFirst?: boolean | undefined;
}

/** A discipline for the line of an `AdaptiveLimiter`: who has waited for too long is turned away, so that others are in time. */
export function codel(options: CodelOptions = {}): LineDiscipline {
  const { targetMs = 5, intervalMs = 100, newestFirst = true } = options;
  checkMs("targetMs", targetMs, { min: 1 });
  checkMs("intervalMs", intervalMs, { min: 1 });
  const standing: JoinTerms = { maxWaitMs: targetMs, isNewestFirst: newestFirst };
  const good: JoinTerms = { maxWaitMs: intervalMs, isNewestFirst: false };
  return (): LineRule => {
    let emptyAt = -Infinity;
    return {
      join(now, waiting) {
        if (waiting === 0) emptyAt = now;
        return now - emptyAt > intervalMs ? standing : good;
      },
    };
  };
}
