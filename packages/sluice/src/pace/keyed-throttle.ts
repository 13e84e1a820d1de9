/** Throttle by key: each connection is told at a steady rhythm, whatever goes on in the others. */
import { systemClock } from "../clock/system.ts";
import { type KeyedPaced, keyedPaced, type KeyedPacedOptions } from "./keyed-paced.ts";
import { throttle, type ThrottleOptions } from "./throttle.ts";

export type KeyedThrottleOptions<K, Args extends unknown[]> = ThrottleOptions & KeyedPacedOptions<K, Args>;

/** As a `throttle` of its own for each key, which is forgotten when its wait is over. */
export function keyedThrottle<K, This, Args extends unknown[], R>(
  fn: (this: This, ...args: Args) => R,
  waitMs: number,
  options: KeyedThrottleOptions<K, Args>,
): KeyedPaced<K, This, Args, R> {
  throttle(fn, waitMs, options); // refuses bad options now, not at the first call
  return keyedPaced(() => throttle(fn, waitMs, options), waitMs, options.clock ?? systemClock, options);
}
