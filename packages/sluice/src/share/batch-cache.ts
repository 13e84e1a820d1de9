/**
 * Keeps loads for a batch that outlives a request: a bounded number of them, each for a time. For values of their own
 * time to live, or that are served stale, use `Cache`.
 */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { checkInteger, checkMs } from "../internal/check.ts";
import type { BatchStore } from "./batch-options.ts";

export interface BatchCacheOptions {
  /** Loads that are kept. For one more, one goes that was not asked for again. An integer >= 1. */
  readonly maxEntries: number;
  /** How long one is kept, counted from when it began, so that no value is older. At least 0. @default Infinity */
  readonly ttlMs?: number | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

export class BatchCache<V> implements BatchStore<V> {
  // I1  no more than maxEntries; of those, whoever was not asked for since it was last considered goes first
  readonly #maxEntries: number;
  readonly #ttlMs: number;
  readonly #clock: Clock;
  readonly #entries = new Map<unknown, Entry<V>>();

  constructor({ maxEntries, ttlMs = Infinity, clock = systemClock }: BatchCacheOptions) {
    this.#maxEntries = checkInteger("maxEntries", maxEntries, { min: 1 });
    this.#ttlMs = checkMs("ttlMs", ttlMs);
    this.#clock = clock;
  }

  /** Loads that are kept, those included that are too old and were not asked for since. */
  get size(): number {
    return this.#entries.size;
  }

  get(id: unknown): Promise<V> | undefined {
    const entry = this.#entries.get(id);
    if (entry === undefined) return undefined;
    if (entry.endsAt <= (this.#ttlMs === Infinity ? 0 : this.#clock.now())) {
      this.#entries.delete(id);
      return undefined;
    }
    entry.isUsed = true;
    return entry.load;
  }

  set(id: unknown, load: Promise<V>): void {
    const endsAt = this.#ttlMs === Infinity ? Infinity : this.#clock.now() + this.#ttlMs;
    this.#entries.delete(id);
    if (this.#entries.size >= this.#maxEntries) this.#evict();
    this.#entries.set(id, { load, endsAt, isUsed: false });
  }

  delete(id: unknown): void {
    this.#entries.delete(id);
  }

  clear(): void {
    this.#entries.clear();
  }

  /** A second chance for what was used: each is considered at most twice. */
  #evict(): void {
    for (const [id, entry] of this.#entries) {
      this.#entries.delete(id);
      if (!entry.isUsed) return;
      entry.isUsed = false;
      this.#entries.set(id, entry);
    }
  }
}

interface Entry<V> {
  readonly load: Promise<V>;
  readonly endsAt: number;
  isUsed: boolean;
}
