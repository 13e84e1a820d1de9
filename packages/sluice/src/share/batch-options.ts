/** What can be told to a batcher. */
import type { NameOptions } from "../internal/names.ts";

/**
 * One for each key, in the order of the keys; `byKey` makes it of a `Map`. An `Error` rejects its key alone.
 */
export type BatchAnswer<V> = readonly (V | Error)[];

/**
 * Called with distinct keys, in the async context of whoever made the batcher, since the callers are many. What it throws
 * rejects all of these keys, as does an answer of another length (`BatchAnswerError`).
 */
export type BatchFunction<K, V> = (
  keys: readonly K[],
  context: BatchContext,
) => BatchAnswer<V> | PromiseLike<BatchAnswer<V>>;

export interface BatchContext {
  /** Aborts when nobody waits for any of the keys. */
  readonly signal: AbortSignal;
}

/** Decides when batches are sent: a `BatchLine`, or your own. */
export interface BatchSchedule {
  /** A batch has its first key; more may come until it is sent. If this throws, the key's load rejects with it. */
  add(batch: Batched): void;
  /**
   * Nothing more comes into it: it is about to be sent, has as many keys as may be, was failed, or nobody waits any more.
   */
  full(batch: Batched): void;
}

export interface Batched {
  /** Keys that somebody waits for. */
  readonly size: number;
  /** Resolves when it has an answer, or was failed; then `failed` has the keys whose loads did. */
  readonly ended: Promise<unknown>;
  readonly failed: readonly unknown[];
  /** Calls the batch function, unless nobody waits. Resolves when the call has ended. */
  send(): Promise<void>;
  /** Ends it, if nothing has: its loads reject with this error, and its signal aborts. */
  fail(error: unknown): void;
}

/**
 * Where promises of values are kept: a `Map` that lives as long as a request, or a `BatchCache`. The `id` is the key, or
 * what `keyOf` makes of it.
 */
export interface BatchStore<V> {
  get(id: unknown): Promise<V> | undefined;
  set(id: unknown, load: Promise<V>): unknown;
  delete(id: unknown): unknown;
  clear(): unknown;
}

export interface BatcherOptions<K, V> extends NameOptions {
  /**
   * When batches are sent. Left out, each at the end of the turn in which it was begun: when all promise reactions have
   * run that this turn led to.
   */
  readonly line?: BatchSchedule | undefined;
  /** Keys in one batch. An integer >= 1. @default Infinity */
  readonly maxSize?: number | undefined;
  /** Weight of the keys in one batch; a key that is heavier goes alone. An integer >= 1. @default Infinity */
  readonly maxWeight?: number | undefined;
  /** A number of at least 0, of bytes for instance. @default 1 */
  readonly weight?: ((key: K) => number) | undefined;
  /** Keys of different groups, such as tenants or shards, are never in one batch. @default all are of one */
  readonly group?: ((key: K) => unknown) | undefined;
  /** What identifies a key: a primitive, or an object that is the same each time. @default the key */
  readonly keyOf?: ((key: K) => unknown) | undefined;
  /**
   * Keeps the promise of each key from when it is first asked for, and drops it if it fails. What was loaded for one user
   * must not be seen by another: let a `Map` live for one request only. @default none
   */
  readonly cache?: BatchStore<V> | undefined;
  /** Whether an error is kept as well. If this throws, it isn't, and the load rejects with that. @default none is */
  readonly cacheErrors?: ((error: unknown) => boolean) | undefined;
}

export interface LoadOptions {
  /** By an abort the caller leaves; when none is left, the key leaves its batch. */
  readonly signal?: AbortSignal | undefined;
}

export type BatcherStats = Readonly<{
  /** Calls of `fn` so far, and the keys in them. */
  batches: number;
  keys: number;
  /** Loads that found their key in the cache. */
  hits: number;
}>;
