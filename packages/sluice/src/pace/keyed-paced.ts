/** The engine of `keyedDebounce` and `keyedThrottle`: one paced function for each key, while the key is in use. */
import type { Clock } from "../clock/clock.ts";
import { checkInteger } from "../internal/check.ts";
import type { Paced } from "./paced.ts";

export interface KeyedPacedOptions<K, Args extends unknown[]> {
  /** What a call belongs to: a document, a user, a connection. */
  readonly key: (...args: Args) => K;
  /**
   * Keys in use at a time. When there are more, the call that waits for the oldest of them is run early, so that nothing
   * is lost. An integer >= 1, or `Infinity`. @default 10_000
   */
  readonly maxKeys?: number | undefined;
}

export interface KeyedPaced<K, This, Args extends unknown[], R> {
  /** What the key's last run returned; undefined before the first, or if the key has been forgotten since. */
  (this: This, ...args: Args): R | undefined;
  /** Drops the call that waits for this key, or those for all keys. */
  cancel(key?: K): void;
  /** Runs the call that waits for this key now, and returns what it returned; undefined if none waits, or within a run. */
  flush(key: K): R | undefined;
  /** Runs those that wait for all keys, and returns what each returned, the keys as they came into use. */
  flush(): (R | undefined)[];
  /** Whether a call waits for this key, or for any. */
  pending(key?: K): boolean;
  /** How many keys are remembered. One is forgotten when nothing waits and its edges are over. */
  keys(): number;
}

interface Entry<This, Args extends unknown[], R> {
  readonly paced: Paced<This, Args, R>;
  /** Sweeps in a row that found it neither waiting nor called since the one before. */
  sweeps: number;
}

export function keyedPaced<K, This, Args extends unknown[], R>(
  make: () => Paced<This, Args, R>,
  waitMs: number,
  clock: Clock,
  { key: keyOf, maxKeys = 10_000 }: KeyedPacedOptions<K, Args>,
): KeyedPaced<K, This, Args, R> {
  // I1  a timer is set exactly while there are entries: an idle key goes within twice `waitMs`
  // I2  a key goes at the second sweep: what waited has run before the first, which was `waitMs` ago at least
  checkInteger("maxKeys", maxKeys, { min: 1, infinity: true });
  const entries = new Map<K, Entry<This, Args, R>>();
  const sweeper = {
    onTimer() {
      for (const [key, entry] of entries) {
        entry.sweeps = entry.paced.pending() ? 0 : entry.sweeps + 1;
        if (entry.sweeps > 1) entries.delete(key);
      }
      if (entries.size > 0) clock.setTimer(waitMs, sweeper, { background: true });
    },
  };

  function call(this: This, ...args: Args): R | undefined {
    const key = keyOf(...args);
    let entry = entries.get(key);
    if (entry === undefined) {
      entry = { paced: make(), sweeps: 0 };
      if (entries.size === 0) clock.setTimer(waitMs, sweeper, { background: true });
      entries.set(key, entry);
    }
    entry.sweeps = 0;
    try {
      return entry.paced.apply(this, args);
    } finally {
      if (entries.size > maxKeys) makeRoom(); // last: what is run there may throw, or call for other keys
    }
  }

  const makeRoom = (): void => {
    for (const [key, { paced }] of entries) {
      entries.delete(key);
      paced.flush();
      return;
    }
  };

  const pacedOf = (key: K | undefined): Paced<This, Args, R>[] => {
    const found = key === undefined ? [...entries.values()] : [entries.get(key)];
    return found.flatMap((entry) => entry?.paced ?? []);
  };

  function flush(key: K): R | undefined;
  function flush(): (R | undefined)[];
  function flush(key?: K): R | undefined | (R | undefined)[] {
    const results = pacedOf(key).flatMap((paced) => (paced.pending() ? [paced.flush()] : []));
    return key === undefined ? results : results[0];
  }

  return Object.assign(call, {
    cancel: (key?: K) => pacedOf(key).forEach((paced) => paced.cancel()),
    flush,
    pending: (key?: K) => pacedOf(key).some((paced) => paced.pending()),
    keys: () => entries.size,
  });
}
