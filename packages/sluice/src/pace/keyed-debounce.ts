/** Debounce by key: each document is saved once its own edits have paused, whatever goes on in the others. */
import { systemClock } from "../clock/system.ts";
import { debounce, type DebounceOptions } from "./debounce.ts";
import { type KeyedPaced, keyedPaced, type KeyedPacedOptions } from "./keyed-paced.ts";

export type KeyedDebounceOptions<K, Args extends unknown[]> = DebounceOptions & KeyedPacedOptions<K, Args>;

/** As a `debounce` of its own for each key, which is forgotten when its burst is over. */
export function keyedDebounce<K, This, Args extends unknown[], R>(
  fn: (this: This, ...args: Args) => R,
  waitMs: number,
  options: KeyedDebounceOptions<K, Args>,
): KeyedPaced<K, This, Args, R> {
  debounce(fn, waitMs, options); // refuses bad options now, not at the first call
  return keyedPaced(() => debounce(fn, waitMs, options), waitMs, options.clock ?? systemClock, options);
}
