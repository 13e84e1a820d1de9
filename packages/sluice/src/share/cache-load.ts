/** A load that is under way for a cache, and who waits for it. Its loader knows it as the context of the call. */
import { keepModel } from "../internal/model.ts";
import { CacheEntry } from "./cache-entry.ts";
import type { CacheLoadContext } from "./cache-options.ts";
import type { Linked } from "./linked.ts";
import { LoadContext } from "./load-context.ts";
import type { LoadMark } from "./load-ring.ts";

export class CacheLoad<K, V> extends LoadContext implements CacheLoadContext<V>, Linked {
  older: Linked = this;
  newer: Linked = this;
  readonly stale: V | undefined;
  ttlMs: number | undefined = undefined;
  idleMs: number | undefined = undefined;
  readonly entry: CacheEntry<K, V>;
  readonly startedAt: number;
  /** It goes on although no caller waits. */
  readonly isWanted: boolean;
  /** Those who wait. */
  callers = 0;
  /** Undefined while the loader is being called. */
  result: Promise<V> | undefined = undefined;
  readonly mark: LoadMark | undefined;

  constructor(entry: CacheEntry<K, V>, startedAt: number, isWanted: boolean, mark: LoadMark | undefined) {
    super();
    this.stale = entry.kept === "value" ? entry.value : undefined;
    this.entry = entry;
    this.startedAt = startedAt;
    this.isWanted = isWanted;
    this.mark = mark;
  }
}

keepModel(new CacheLoad(new CacheEntry(undefined, undefined), 0, false, undefined));
