/** What the stats of different primitives have in common, under one name each; undefined where they don't say. */
import type { Stats } from "../internal/names.ts";

export interface Readings {
  /** Who or what is in line. */
  readonly depth: number | undefined;
  /** Of the line; `Infinity` if it has no end. */
  readonly capacity: number | undefined;
  /** Of the oldest in line. */
  readonly ageMs: number | undefined;
  /** How many may be let in at once. */
  readonly limit: number | undefined;
  readonly used: number | undefined;
  /** How many were let in, or out, so far. */
  readonly done: number | undefined;
  readonly rejected: number | undefined;
}

export function readingsOf(stats: Stats): Readings {
  const read = (...keys: readonly string[]): number | undefined =>
    keys.map((key) => stats[key]).find((value) => typeof value === "number");
  const { locked } = stats; // of a mutex, which is a limit of one
  const limit = typeof locked === "boolean" ? 1 : read("permits", "concurrency", "max", "workers");
  const isLimiter = stats["concurrency"] !== undefined; // where `taken` are slots: elsewhere it counts what was taken
  return {
    depth: read("waiting", "size"),
    capacity: read("capacity", "maxWaiting"),
    ageMs: read("oldestAgeMs", "oldestWaitMs"),
    limit,
    used:
      typeof locked === "boolean"
        ? Number(locked)
        : read("held", "borrowed", ...(isLimiter ? ["taken"] : []), "running"),
    done: read("completed", "granted", "taken", "passed", "rounds", "stopped"),
    rejected: read("rejected"),
  };
}
