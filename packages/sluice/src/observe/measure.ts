/** What alarms go by, of everything there is. */
import { namedEntries, nameOf } from "../internal/names.ts";
import { currentLedger } from "./enable.ts";
import { type Readings, readingsOf } from "./readings.ts";
import type { Subject } from "./subject.ts";

/** One thing, and what was measured of it; undefined if that can't be told this time. */
export interface Measured {
  /** Stands for the thing and does not keep it alive. */
  readonly key: object;
  readonly subject: Subject;
  readonly dependency: string | undefined;
  readonly value: number | undefined;
}

/** Tells the value for each thing with a name. */
function measureNamed(valueOf: (readings: Readings, key: object) => number | undefined): Measured[] {
  return namedEntries().flatMap((entry) => {
    const target = entry.target.deref();
    if (target === undefined) return [];
    const { kind, name, dependency } = entry;
    try {
      return [{ key: entry, subject: { kind, name }, dependency, value: valueOf(readingsOf(target.stats()), entry) }];
    } catch {
      return []; // `named` shows the error
    }
  });
}

export function ages(): Measured[] {
  return measureNamed(({ ageMs }) => ageMs);
}

export function heldTimes(now: number): Measured[] {
  const lenders = currentLedger()?.lenders() ?? [];
  return lenders.map((lender) => {
    const [oldest] = lender.holds; // they are in the order of taking
    const value = oldest === undefined ? 0 : now - oldest.takenAt;
    const target = lender.target.deref();
    const dependency = target === undefined ? undefined : nameOf(target)?.dependency;
    return { key: lender, subject: lender.subject, dependency, value };
  });
}

interface Counts {
  readonly done: number;
  readonly rejected: number;
}

/** Share of the calls that were turned away since it was last told; only told of `minCalls` at least. */
export class RejectedShares {
  readonly #minCalls: number;
  readonly #before = new WeakMap<object, Counts>();

  constructor(minCalls: number) {
    this.#minCalls = minCalls;
  }

  measure(): Measured[] {
    return measureNamed(({ done, rejected }, key) =>
      done === undefined || rejected === undefined ? undefined : this.#share({ done, rejected }, key),
    );
  }

  #share(counts: Counts, key: object): number | undefined {
    const before = this.#before.get(key);
    if (before === undefined) this.#before.set(key, counts);
    if (before === undefined) return undefined;
    const rejected = counts.rejected - before.rejected;
    const calls = rejected + counts.done - before.done;
    if (calls < this.#minCalls) return undefined;
    this.#before.set(key, counts);
    return rejected / calls;
  }
}
