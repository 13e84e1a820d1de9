/**
 * The time for those who need it often and not exactly: reading a clock takes as long as all else that a wait does. In a
 * burst of readings one serves for many.
 */
import type { Clock } from "./clock.ts";

/** Readings that follow each other within `WITHIN_MS` so many times are a burst. */
const STREAK = 16;
const WITHIN_MS = 1 / 16;
/** How long a reading may serve, turns of the event loop that take longer aside, and for how many. */
const SERVES_MS = 1;
const SERVES = 64;

export function coarseTime(clock: Clock): () => number {
  // I1  left > 0 only while a timer is set that ends it
  let reading = -Infinity;
  let left = 0;
  let streak = 0;
  let endsAt = -Infinity;
  const task = { onTimer: () => void (left = 0) };
  return () => {
    if (left > 0) {
      left -= 1;
      return reading;
    }
    const now = clock.now();
    streak = now - reading < WITHIN_MS ? streak + 1 : 0;
    reading = now;
    if (streak < STREAK) return now;
    if (now >= endsAt) {
      clock.setTimer(SERVES_MS, task, { background: true }); // may throw, as any clock's may
      endsAt = now + SERVES_MS;
    }
    left = SERVES;
    return now;
  };
}
