/** What a cache is told: how much it keeps, how long, and of whom it asks the time. */
import type { Clock } from "../clock/clock.ts";
import type { NameOptions } from "../internal/names.ts";
import type { Freshness } from "./freshness.ts";

/**
 * Gets the value for a key: called at once by whoever misses it, in that caller's async context. Those who come
 * meanwhile wait for the same call. `undefined` and `null` are values too: that there is nothing.
 */
export type CacheLoader<K, V> = (key: K, context: CacheLoadContext<V>) => V | PromiseLike<V>;

export interface CacheLoadContext<V> {
  /** Aborts when the last caller has left. */
  readonly signal: AbortSignal;
  /** What was kept until now, if it is of use still: for a request that asks whether it has changed. */
  readonly stale: V | undefined;
  /** What the load sets holds for this value. What is refused is an unhandled rejection; the value is handed out, not kept. */
  ttlMs: KeepOptions["ttlMs"];
  idleMs: KeepOptions["idleMs"];
}

export interface KeepOptions {
  /** How long the value is kept; 0: it isn't. At least 0. @default as the cache's options say */
  readonly ttlMs?: number | undefined;
  /**
   * It is forgotten when it has not been used for this long. At least 0; refused with a `TypeError` where the cache has no
   * `freshness`, which counts uses. @default as the freshness says
   */
  readonly idleMs?: number | undefined;
}

export interface CacheOptions<K, V> extends NameOptions {
  /** Entries at a time; loads under way are beside them. An integer >= 1. */
  readonly maxEntries: number;
  /** Sum of the weights of all entries; one that is heavier alone isn't kept. An integer >= 0. @default Infinity */
  readonly maxWeight?: number | undefined;
  /** What an entry weighs, such as its bytes: an integer >= 0. @default 1 each */
  readonly weigh?: ((value: V, key: K) => number) | undefined;
  /** How long a value is kept; 0: it isn't. At least 0. @default Infinity */
  readonly ttlMs?: number | undefined;
  /** What identifies a key: a primitive, or an object that is the same each time. @default the key */
  readonly keyOf?: ((key: K) => unknown) | undefined;
  /** How values age besides: idle, stale, renewed ahead, absent. @default they end with their `ttlMs` */
  readonly freshness?: Freshness | undefined;
  /** A load goes on, and its value is kept, though the last of its callers has left. @default false */
  readonly finishLoads?: boolean | undefined;
  /** Told of each value that is kept no more. What this throws is an unhandled rejection, and changes nothing else. */
  readonly onEvict?: ((eviction: Eviction<K, V>) => void) | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

/** `evicted`: there was no room for it · `expired` · `replaced`: by a newer value · `deleted`: by `delete` or `clear`. */
export type EvictionReason = "evicted" | "expired" | "replaced" | "deleted";

export interface Eviction<K, V> {
  readonly key: K;
  readonly value: V;
  readonly reason: EvictionReason;
}

export type CacheStats = Readonly<{
  /** Kept now, with what is stale, and what they weigh. */
  entries: number;
  weight: number;
  /** Loads under way, and how long the oldest has been. */
  loading: number;
  oldestLoadMs: number;
  /** Reads so far: those that were answered at once, and those that had to wait for a load. */
  hits: number;
  misses: number;
  /** Loads that were begun, and those that failed. */
  loads: number;
  failures: number;
  /** Entries that are no more, by the reason. */
  evicted: number;
  expired: number;
  replaced: number;
  deleted: number;
}>;
