/** A key of a cache: what is kept for it, and the load that is under way for it. */
import { keepModel } from "../internal/model.ts";
import type { CacheLoad } from "./cache-load.ts";
import type { Life } from "./freshness.ts";
import { SieveNode } from "./sieve.ts";

export class CacheEntry<K, V> extends SieveNode {
  /** As it was asked for. */
  readonly input: K;
  kept: "value" | "failure" | undefined = undefined;
  /** The reason, if a failure is kept. */
  value: V | undefined = undefined;
  /** Of the value, for all who ask, once one has. A failure has none: each of its callers must hear of it. */
  promise: Promise<V> | undefined = undefined;
  /** Until then a read needs no second look. */
  dueAt: number = Infinity;
  /** Without one, what is kept is gone when it is due. */
  life: Life | undefined = undefined;
  /** Whose value will be kept. */
  load: CacheLoad<K, V> | undefined = undefined;

  constructor(key: unknown, input: K) {
    super(key);
    this.input = input;
  }

  /** Whether a read is answered with what is kept. */
  isServed(now: number): boolean {
    return this.kept !== undefined && now < (this.life?.servedUntil ?? this.dueAt);
  }

  isGone(now: number): boolean {
    return now >= this.dueAt && this.life?.isGone(now) !== false;
  }
}

keepModel(new CacheEntry(undefined, undefined));
