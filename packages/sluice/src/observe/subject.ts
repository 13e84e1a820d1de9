import { nameOf } from "../internal/names.ts";

/** What a report, an event or an alarm is about. */
export interface Subject {
  /** `semaphore`, `queue`, `limiter`, … */
  readonly kind: string;
  /** Undefined for what has no name. */
  readonly name: string | undefined;
}

export function subjectOf(target: object): Subject {
  const entry = nameOf(target);
  if (entry !== undefined) return { kind: entry.kind, name: entry.name };
  if ("kind" in target && typeof target.kind === "string") return { kind: target.kind, name: undefined };
  const words = target.constructor.name.replaceAll(/(?<=.)(?=[A-Z])/g, "-");
  return { kind: words.toLowerCase(), name: undefined };
}

/** For sentences. */
export function titleOf({ kind, name }: Subject): string {
  return name === undefined ? `a ${kind} without a name` : `${kind} "${name}"`;
}
