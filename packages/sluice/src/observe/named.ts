/** What has a name now, and how it is doing. What has none is not found, and pays nothing for it. */
import { namedEntries, type NamedEntry, type Stats } from "../internal/names.ts";

export type Named = NamedStats | NamedFailure;

interface Identity {
  /** `semaphore`, `queue`, `limiter`, … */
  readonly kind: string;
  /** Need not be the only one of its kind. */
  readonly name: string;
}

export interface NamedStats extends Identity {
  readonly stats: Stats;
  readonly error?: undefined;
}

/** Its `stats()` threw, which is nobody else's trouble. */
export interface NamedFailure extends Identity {
  readonly stats?: undefined;
  readonly error: unknown;
}

/** All that has a name and is still in use somewhere, in the order of its making. */
export function named(): Named[] {
  const found: Named[] = [];
  for (const entry of namedEntries()) {
    const one = look(entry);
    if (one !== undefined) found.push(one);
  }
  return found;
}

function look({ kind, name, target }: NamedEntry): Named | undefined {
  const observed = target.deref();
  if (observed === undefined) return undefined;
  try {
    return { kind, name, stats: observed.stats() };
  } catch (error) {
    return { kind, name, error };
  }
}
