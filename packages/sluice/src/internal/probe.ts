/**
 * Where the primitives tell `sluice/observe` what it cannot read from their stats. Nobody listens until it is asked to:
 * then both are undefined, and each place that would tell costs one comparison.
 */
import type { Task } from "../policy.ts";
import type { NamedEntry } from "./names.ts";

/** Told of what is held and who waits. Says nothing back and throws nothing. */
export interface Probe {
  /** `lender` gave out `hold`, a permit or a guard, to who runs now, or to who had made `wait`. No object is no hold. */
  took(lender: object, hold: unknown, weight?: number, wait?: object): void;
  /** Only once for each hold; also for one that was taken unobserved. */
  gaveBack(hold: object): void;
  /** `to` is now what `from` was, which is nothing any more. */
  moved(from: object, to: object): void;
  /** Calls `fn`, which holds `hold` until what it returns has settled: who waits in there is who holds it. */
  within<T>(hold: object, fn: () => T): T;
  /** `fn` as what takes slots of `lender` when it is called, and has them until what it returned has settled. */
  slot<T>(lender: object, fn: Task<T>, weight: number): Task<T>;
  /** Somebody joined a line of `owner`. */
  joined(owner: object, wait: object): void;
  /** It left the line, granted or not; also one that joined unobserved. */
  left(wait: object): void;
  /** Who runs now is one of the `parties` that `owner` waits for. */
  arrived(owner: object, parties: number): void;
  /** Calls `fn` as who had `hold` and gave it back, or as nobody. */
  as<T>(hold: object, fn: () => T): T;
  /** Calls `fn` as somebody of its own, within who runs now. */
  enter<T>(fn: () => T): T;
  /** A fan-out began whose calls are `width` in all, by a fan-out in each branch of others, `depth` deep. */
  fannedOut(width: number, depth: number): void;
  /** Something was made that has a name. */
  named(entry: NamedEntry): void;
}

/** What these mean is said where they are heard, in `observe/events.ts`. */
type NoticeName = "rejected" | "dropped" | "timed-out" | "aborted" | "closed" | "failed";

/** Told of what happened to `about`, or to something of the `kind` that it has, as it happens. Throws nothing. */
export type Notice = (name: NoticeName, about: object, detail?: unknown) => void;

export let probe: Probe | undefined;
export let notice: Notice | undefined;

export function setProbe(next: Probe | undefined): void {
  probe = next;
}

export function setNotice(next: Notice | undefined): void {
  notice = next;
}
