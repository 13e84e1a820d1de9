/**
 * What was given a name, so that `sluice/observe` can find it. Held weakly: a name keeps nothing alive.
 * What has no name costs one comparison.
 */
import { checkString } from "./check.ts";
import { probe } from "./probe.ts";

export type Stats = Readonly<Record<string, number | string | boolean>>;

export interface Observed {
  stats(): Stats;
}

export interface NameOptions {
  /** Makes it visible to `sluice/observe`. */
  readonly name?: string | undefined;
  /** What it protects, in a word of the user's: the limits on one dependency are summed. Needs a `name`. */
  readonly dependency?: string | undefined;
}

export interface NamedEntry {
  /** `semaphore`, `queue`, `limiter`, … */
  readonly kind: string;
  /** As the user gave it: nothing keeps two things from having the same. */
  readonly name: string;
  readonly dependency: string | undefined;
  readonly target: WeakRef<Observed>;
}

// I1  an entry is in the set from `register` until its target has been collected
const entries = new Set<NamedEntry>();
const gone = new FinalizationRegistry<NamedEntry>((entry) => void entries.delete(entry));
const byTarget = new WeakMap<object, NamedEntry>();

/** For the end of a constructor: what throws on the way must not be found. */
export function register(kind: string, { name, dependency }: NameOptions, target: Observed): void {
  if (name === undefined && dependency === undefined) return;
  checkString("name", name);
  if (dependency !== undefined) checkString("dependency", dependency);
  const entry: NamedEntry = { kind, name, dependency, target: new WeakRef(target) };
  entries.add(entry);
  byTarget.set(target, entry);
  gone.register(target, entry);
  probe?.named(entry);
}

/** What `target` was registered as, if it has a name. */
export function nameOf(target: object): NamedEntry | undefined {
  return byTarget.get(target);
}

/** Those of now, in the order of their making; the target of some may be gone already. */
export function namedEntries(): NamedEntry[] {
  return [...entries];
}
