/**
 * A value that many read and few replace: readers take the whole of it by one reference and see nothing half done,
 * writers build a new one and swap it in. For configuration, routes, flags; what is read may be old by the time it is
 * used, so not for a balance that is being spent. What is written often or is large is cheaper under an `RwLock`.
 */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { ConflictError } from "../errors.ts";
import { AsyncContext } from "../internal/async-context.ts";
import { checkFunction, checkInteger } from "../internal/check.ts";
import { Emitter } from "../internal/emitter.ts";
import { type NameOptions, register } from "../internal/names.ts";
import { isThenable, whenSettled } from "../internal/when-settled.ts";
import type { DeepReadonly } from "../sync/rw-lock-guard.ts";
import { deepFreeze } from "./freeze.ts";

export interface SnapshotOptions extends NameOptions {
  /**
   * Freezes each value all through, which takes plain data: a Map, Set, Date, typed array, function or instance of a
   * class is refused with a `TypeError`. If false, nothing is frozen and whoever changes a value in place does so for
   * all. @default true
   */
  readonly freeze?: boolean | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

export interface SnapshotUpdateOptions {
  /** How often `fn` is called before the update gives up. An integer >= 1. @default 1_000 */
  readonly maxAttempts?: number | undefined;
}

export interface PinnedSnapshot<T> {
  readonly value: DeepReadonly<T>;
  /** 1 for the first value, and one more with each that replaced another. */
  readonly version: number;
}

export interface SnapshotChange<T> extends PinnedSnapshot<T> {
  readonly previous: DeepReadonly<T>;
}

export type SnapshotStats = Readonly<{
  version: number;
  /** For how long the value has been the same. */
  ageMs: number;
  subscribers: number;
  /** Attempts of updates that came too late: what they had begun with was replaced meanwhile. */
  conflicts: number;
}>;

export class Snapshot<T> {
  // I1  #now is replaced as a whole: its value and version belong together
  // I2  a version is given once, to one value, and versions only grow
  // I3  listeners hear of each change once, in the order of versions
  readonly name: string | undefined;
  readonly #freezes: boolean;
  readonly #clock: Clock;
  readonly #context = new AsyncContext<PinnedSnapshot<T>>();
  readonly #changes = new Emitter<SnapshotChange<T>>();
  #untold: SnapshotChange<T>[] = [];
  #now: PinnedSnapshot<T>;
  #changedAt: number;
  #conflicts = 0;

  constructor(value: T, options: SnapshotOptions = {}) {
    this.#freezes = options.freeze ?? true;
    this.#clock = options.clock ?? systemClock;
    this.#now = Object.freeze({ value: this.#fix(value as DeepReadonly<T>), version: 1 });
    this.#changedAt = this.#clock.now();
    this.name = options.name;
    register("snapshot", options, this);
  }

  get version(): number {
    return this.#now.version;
  }

  /** The value that `run` pinned for who asks, else the latest. */
  get current(): DeepReadonly<T> {
    return (this.#context.get() ?? this.#now).value;
  }

  stats(): SnapshotStats {
    return {
      version: this.version,
      ageMs: this.#clock.now() - this.#changedAt,
      subscribers: this.#changes.size,
      conflicts: this.#conflicts,
    };
  }

  /** The latest value. Who asks twice may get two: for one request, `pin` it, or use `run` and `current`. */
  get(): DeepReadonly<T> {
    return this.#now.value;
  }

  /** The latest value with its version, to be handed on through a request. */
  pin(): PinnedSnapshot<T> {
    return this.#now;
  }

  /**
   * Calls `fn`: in there, and in all that it awaits, `current` is the value of now, whatever replaces it. A `run` within
   * a `run` keeps the outer one's. In runtimes without async context, `current` is the latest.
   */
  run<R>(fn: () => R): R {
    return this.#context.run(this.#context.get() ?? this.#now, fn);
  }

  /**
   * Replaces the value; with `version`, only if that is the version of now. Whether it did. Throws `TypeError` for what
   * cannot be frozen, and then nothing has changed.
   */
  set(value: DeepReadonly<T>, version?: number): boolean {
    const fixed = this.#fix(value);
    if (version !== undefined && version !== this.version) return false;
    this.#replace(fixed);
    return true;
  }

  /**
   * Replaces the value by what `fn` makes of it: at once, if that is no promise. If others replace it while `fn` works,
   * `fn` is called again with the new value, so it must do nothing else; no update is lost. What it returned last is
   * the result. The same value again is no change. Rejects with what `fn` throws, with `TypeError` for what cannot be
   * frozen, or with `ConflictError` after `maxAttempts`; then nothing has changed.
   */
  update(
    fn: (value: DeepReadonly<T>, version: number) => DeepReadonly<T> | PromiseLike<DeepReadonly<T>>,
    options: SnapshotUpdateOptions = {},
  ): Promise<DeepReadonly<T>> {
    try {
      checkFunction("fn", fn);
      const maxAttempts = checkInteger("maxAttempts", options.maxAttempts ?? 1_000, { min: 1 });
      return this.#attempt(fn, 1, maxAttempts);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /**
   * Calls `listener` after each change, in the turn of the change and in the order of changes: one made by a listener is
   * told when all have heard of the one before. What a listener throws is an unhandled rejection, and nobody else's
   * trouble. Returns how to stop.
   */
  subscribe(listener: (change: SnapshotChange<T>) => void): () => void {
    return this.#changes.add(listener);
  }

  #attempt(
    fn: (value: DeepReadonly<T>, version: number) => DeepReadonly<T> | PromiseLike<DeepReadonly<T>>,
    attempt: number,
    maxAttempts: number,
  ): Promise<DeepReadonly<T>> {
    const before = this.#now;
    const swap = (value: DeepReadonly<T>): DeepReadonly<T> | Promise<DeepReadonly<T>> => {
      const fixed = this.#fix(value);
      if (this.#now === before) {
        if (!Object.is(fixed, before.value)) this.#replace(fixed);
        return fixed;
      }
      this.#conflicts += 1;
      if (attempt >= maxAttempts) throw new ConflictError(attempt);
      return this.#attempt(fn, attempt + 1, maxAttempts);
    };
    const made = fn(before.value, before.version);
    return isThenable(made) ? whenSettled(made, swap) : Promise.resolve(swap(made));
  }

  #fix(value: DeepReadonly<T>): DeepReadonly<T> {
    return this.#freezes ? deepFreeze(value) : value;
  }

  #replace(value: DeepReadonly<T>): void {
    const { value: previous, version } = this.#now;
    this.#changedAt = this.#clock.now();
    this.#now = Object.freeze({ value, version: version + 1 });
    if (this.#changes.size === 0) return;
    this.#untold.push({ ...this.#now, previous });
    if (this.#untold.length > 1) return; // a listener did this: whoever told it tells this too
    for (let change = this.#untold[0]; change !== undefined; change = this.#untold[0]) {
      this.#changes.emit(change);
      this.#untold.shift();
    }
  }
}
