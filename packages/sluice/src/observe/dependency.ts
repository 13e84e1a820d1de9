/** What the program calls, and how much that can take: to be held against the limits that name it. */
import { checkInteger, checkString } from "../internal/check.ts";

export interface DependencyOptions {
  /** Calls it can take at once, from all processes together. An integer >= 1. */
  readonly capacity: number;
  /** Processes that call it as this one does. An integer >= 1. @default 1 */
  readonly replicas?: number | undefined;
}

export interface Dependency {
  readonly capacity: number;
  readonly replicas: number;
}

const declared = new Map<string, Dependency>();

/** Says what the dependency that options of limits name by `dependency` can take. A later word replaces an earlier one. */
export function declareDependency(name: string, options: DependencyOptions): void {
  checkString("name", name);
  const capacity = checkInteger("capacity", options.capacity, { min: 1 });
  const replicas = checkInteger("replicas", options.replicas ?? 1, { min: 1 });
  declared.set(name, { capacity, replicas });
}

export function dependencies(): ReadonlyMap<string, Dependency> {
  return declared;
}
