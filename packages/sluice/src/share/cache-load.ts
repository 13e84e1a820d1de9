/** A load that is under way for a cache, and who waits for it. Its loader knows it as the context of the call. */
import type { CacheLoadContext } from "./cache-options.ts";

export class CacheLoad<V> implements CacheLoadContext<V> {
  readonly stale: V | undefined;
  ttlMs: number | undefined;
  idleMs: number | undefined;
  readonly startedAt: number;
  /** It goes on although no caller waits. */
  readonly isWanted: boolean;
  /** Those who wait. */
  callers = 0;
  /** Undefined while the loader is being called. */
  result: Promise<V> | undefined;
  #controller: AbortController | undefined;

  constructor(startedAt: number, stale: V | undefined, isWanted: boolean) {
    this.startedAt = startedAt;
    this.stale = stale;
    this.isWanted = isWanted;
  }

  /** Made when it is first asked for: for every load, it would be most of what one costs. */
  get signal(): AbortSignal {
    return (this.#controller ??= new AbortController()).signal;
  }

  /** Not a method: a load must not end itself for its callers. */
  static abort<V>(load: CacheLoad<V>, reason: unknown): void {
    (load.#controller ??= new AbortController()).abort(reason);
  }
}
