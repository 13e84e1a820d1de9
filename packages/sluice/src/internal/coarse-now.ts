import type { Clock } from "../clock/clock.ts";

/** The time for who asks often and needs no exact one, which takes a clock longer; exactly, if it has no other. */
export function coarseNow(clock: Clock): number {
  return clock.coarseNow?.() ?? clock.now();
}
