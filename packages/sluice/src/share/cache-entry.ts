/** A value that is kept, or a failure in its place. */
import type { Life } from "./freshness.ts";
import { SieveNode } from "./sieve.ts";

export class CacheEntry<K, V> extends SieveNode<K> {
  /** The reason, if it is a failure. */
  readonly value: V;
  /** Of the value, for all who ask. A failure has none: each of its callers must hear of it. */
  readonly promise: Promise<V> | undefined;
  /** Until then a read needs no second look. */
  dueAt: number;
  /** Without one it is gone when it is due. */
  readonly life: Life | undefined;

  constructor(key: K, value: V, promise: Promise<V> | undefined, dueAt: number, life: Life | undefined) {
    super(key);
    this.value = value;
    this.promise = promise;
    this.dueAt = dueAt;
    this.life = life;
  }

  isGone(now: number): boolean {
    return now >= this.dueAt && this.life?.isGone(now) !== false;
  }
}
