/**
 * What was given a name, so that `sluice/observe` can find it. Held weakly: a name keeps nothing alive.
 * What has no name costs one comparison.
 */
export interface Observed {
  stats(): Readonly<Record<string, number | string | boolean>>;
}

export interface NamedEntry {
  readonly kind: string;
  readonly name: string;
  readonly target: WeakRef<Observed>;
}

const entries = new Set<NamedEntry>();
const gone = new FinalizationRegistry<NamedEntry>((entry) => void entries.delete(entry));

export function register(kind: string, name: string | undefined, target: Observed): void {
  if (name === undefined) return;
  const entry: NamedEntry = { kind, name, target: new WeakRef(target) };
  entries.add(entry);
  gone.register(target, entry);
}

export function namedEntries(): Iterable<NamedEntry> {
  return entries;
}
