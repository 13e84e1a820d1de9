import { NotHeldError } from "../errors.ts";
import { dispose } from "../internal/dispose.ts";
import { probe } from "../internal/probe.ts";
import type { RunContext } from "../policy.ts";

/**
 * `T` as a reader may see it: nothing in it can be assigned. That is checked where it is compiled and nowhere else, and
 * what only methods change, such as a `Date`, it cannot protect: `Snapshot` does.
 */
export type DeepReadonly<T> = T extends Fixed
  ? T
  : T extends ReadonlyMap<infer K, infer V>
    ? ReadonlyMap<DeepReadonly<K>, DeepReadonly<V>>
    : T extends ReadonlySet<infer V>
      ? ReadonlySet<DeepReadonly<V>>
      : T extends object
        ? { readonly [P in keyof T]: DeepReadonly<T[P]> }
        : T;

type Fixed =
  | ((...args: never[]) => unknown)
  | Date
  | RegExp
  | Error
  | Promise<unknown>
  | ArrayBufferLike
  | ArrayBufferView;

/** A held read lock. Releasing it twice is the same as releasing it once. */
export interface ReadGuard<T> extends Disposable {
  /** Until it is released. */
  readonly isHeld: boolean;
  /** What the lock guards. Throws `NotHeldError` once it is released. */
  readonly value: DeepReadonly<T>;
  release(): void;
}

/** The held write lock. Releasing it twice is the same as releasing it once. */
export interface WriteGuard<T> extends Disposable {
  /** Until it is released or downgraded. */
  readonly isHeld: boolean;
  /** What the lock guards, to be changed in place. Throws `NotHeldError` once it is released. */
  readonly value: T;
  /** Another value for the lock to guard. Throws `NotHeldError` once it is released. */
  replace(value: T): void;
  /**
   * Goes on as a reader, with no writer in between, and releases this guard. Other readers may come in at once, unless
   * a writer is ahead of them. Throws `NotHeldError` once it is released.
   */
  downgrade(): ReadGuard<T>;
  release(): void;
}

export interface ReadContext<T> extends RunContext {
  readonly value: DeepReadonly<T>;
}

export interface WriteContext<T> extends RunContext {
  readonly value: T;
  /** Another value for the lock to guard. */
  readonly replace: (value: T) => void;
}

/** What guards need of their lock. `since` is what they were issued with. */
export interface GuardHost<T> {
  value: T;
  endRead(since: number): void;
  endWrite(since: number): void;
  downgrade(since: number): ReadGuard<T>;
}

export function issueRead<T>(host: GuardHost<T>, since: number): ReadGuard<T> {
  return new HeldRead(host, since);
}

export function issueWrite<T>(host: GuardHost<T>, since: number): WriteGuard<T> {
  return new HeldWrite(host, since);
}

abstract class HeldGuard<T> {
  protected host: GuardHost<T> | undefined;
  protected readonly since: number;

  constructor(host: GuardHost<T>, since: number) {
    this.host = host;
    this.since = since;
  }

  get isHeld(): boolean {
    return this.host !== undefined;
  }

  release(): void {
    const { host } = this;
    this.host = undefined;
    if (host === undefined) return;
    probe?.gaveBack(this);
    this.end(host);
  }

  [dispose](): void {
    this.release();
  }

  protected abstract end(host: GuardHost<T>): void;
}

class HeldRead<T> extends HeldGuard<T> implements ReadGuard<T> {
  get value(): DeepReadonly<T> {
    return held(this.host, "read").value as DeepReadonly<T>;
  }

  protected override end(host: GuardHost<T>): void {
    host.endRead(this.since);
  }
}

class HeldWrite<T> extends HeldGuard<T> implements WriteGuard<T> {
  get value(): T {
    return held(this.host, "write").value;
  }

  replace(value: T): void {
    held(this.host, "write").value = value;
  }

  downgrade(): ReadGuard<T> {
    const host = held(this.host, "write");
    this.host = undefined;
    probe?.gaveBack(this);
    return host.downgrade(this.since);
  }

  protected override end(host: GuardHost<T>): void {
    host.endWrite(this.since);
  }
}

function held<T>(host: GuardHost<T> | undefined, mode: string): GuardHost<T> {
  if (host === undefined) throw new NotHeldError(`${mode} lock`);
  return host;
}
