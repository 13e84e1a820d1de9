/**
 * What was given a name, so that `sluice/observe` can find it. Held weakly: a name keeps nothing alive.
 * What has no name costs one comparison.
 */
export type Stats = Readonly<Record<string, number | string | boolean>>;

export interface Observed {
  stats(): Stats;
}

export interface NamedEntry {
  /** `semaphore`, `queue`, `limiter`, … */
  readonly kind: string;
  /** As the user gave it: nothing keeps two things from having the same. */
  readonly name: string;
  readonly target: WeakRef<Observed>;
}

// I1  an entry is in the set from `register` until its target has been collected
const entries = new Set<NamedEntry>();
const gone = new FinalizationRegistry<NamedEntry>((entry) => void entries.delete(entry));

/** For the end of a constructor: what throws on the way must not be found. */
export function register(kind: string, name: string | undefined, target: Observed): void {
  if (name === undefined) return;
  if (typeof name !== "string") throw new TypeError(`name must be a string, got ${typeof name}`);
  const entry: NamedEntry = { kind, name, target: new WeakRef(target) };
  entries.add(entry);
  gone.register(target, entry);
}

/** Those of now, in the order of their making; the target of some may be gone already. */
export function namedEntries(): NamedEntry[] {
  return [...entries];
}
