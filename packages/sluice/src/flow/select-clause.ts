/** What `select` can wait for. */
import type { Clock, Timer, TimerTask } from "../clock/clock.ts";
import { Watcher } from "../internal/abort.ts";
import { checkMs, checkSignal } from "../internal/check.ts";
import { type BoundedQueue, coreOf } from "./queue-contract.ts";
import type { Granted, QueueCore } from "./queue-core.ts";
import { type Claim, ClauseWait, type Joined } from "./select-wait.ts";

/** One thing that may happen. It may be used for any number of selects, also at once. Made by the functions below. */
export interface SelectClause<V> {
  /** Lets it happen, if it can now. Throws what its own call would reject with. */
  attempt(): Ready<V> | undefined;
  /** Waits until it can, as it cannot now. */
  join(claim: Claim<V>, clock: Clock): Joined;
}

export interface Ready<V> {
  readonly value: V;
}

/** The next item of a queue. Once that has failed, or is closed and empty, the select rejects as `take` would. */
export function taking<T, I extends object>(queue: BoundedQueue<T, I>): SelectClause<T> {
  return new Taking<T, T, I>(coreOf(queue), (item) => item);
}

/** As `next` of an iterator: the next item as `{ done: false, value }`, and `{ done: true }` once closed and empty. */
export function iterating<T, I extends object>(queue: BoundedQueue<T, I>): SelectClause<IteratorResult<T, undefined>> {
  const toResult = (value: T): IteratorResult<T, undefined> => ({ done: false, value });
  return new Taking(coreOf(queue), toResult, { value: { done: true, value: undefined } });
}

/** Room for an item, which is put only if this clause is the one; with false if it was dropped, as `put` would. */
export function putting<T, I extends object>(queue: BoundedQueue<T, I>, item: T, options?: I): SelectClause<boolean> {
  return new Putting(coreOf(queue), item, options);
}

/** The passing of `ms`, counted from the call of the select; 0 is ready at once. */
export function elapsing(ms: number): SelectClause<undefined> {
  return new Elapsing(checkMs("ms", ms));
}

/** The abort of a signal, with its reason. What is to end the select as an error is its option `signal`. */
export function aborting(signal: AbortSignal): SelectClause<unknown> {
  checkSignal(signal);
  return new Aborting(signal);
}

class Taking<T, V, I extends object> implements SelectClause<V> {
  readonly #core: QueueCore<T, I>;
  readonly #toValue: (item: T) => V;
  readonly #end: Ready<V> | undefined;

  constructor(core: QueueCore<T, I>, toValue: (item: T) => V, end?: Ready<V>) {
    this.#core = core;
    this.#toValue = toValue;
    this.#end = end;
  }

  attempt(): Ready<V> | undefined {
    try {
      return this.#core.canTake() ? { value: this.#toValue(this.#core.next()) } : undefined;
    } catch (error) {
      if (this.#end !== undefined && error === this.#core.closedBy) return this.#end;
      throw error;
    }
  }

  join(claim: Claim<V>): Joined {
    // The code of another clause may have put, or ended it, since it was asked. Not from a producer: it may be the same select.
    const { store, isOver } = this.#core;
    const ready = store.isReady || isOver ? this.attempt() : undefined;
    if (ready !== undefined) {
      claim.seize();
      claim.win(ready.value);
      return NOWHERE;
    }
    const fail = (reason: unknown): void => {
      if (this.#end !== undefined && reason === this.#core.closedBy) claim.win(this.#end.value);
      else claim.fail(reason);
    };
    const win = (item: T): void => claim.win(this.#toValue(item));
    const wait = new ClauseWait<T, void>(this.#core.clock.now(), undefined, claim, win, fail);
    return this.#core.joinConsumers(wait, undefined);
  }
}

/** Of what had nothing to wait for. */
const NOWHERE: Joined = { leave: () => {} };

class Putting<T, I extends object> implements SelectClause<boolean> {
  readonly #core: QueueCore<T, I>;
  readonly #item: T;
  readonly #options: I | undefined;
  /** What found no room, for the select that joins next: `priorityOf` is asked once for each. */
  #turnedAway: { readonly entry: unknown } | undefined;

  constructor(core: QueueCore<T, I>, item: T, options: I | undefined) {
    this.#core = core;
    this.#item = item;
    this.#options = options;
  }

  attempt(): Ready<boolean> | undefined {
    const entry = this.#core.store.enter(this.#item, this.#options);
    const isIn = this.#core.tryPut(entry);
    if (isIn !== undefined) return { value: isIn };
    this.#turnedAway = { entry };
    return undefined;
  }

  join(claim: Claim<boolean>): Joined {
    const { store, producers, clock } = this.#core;
    const { entry } = this.#turnedAway ?? { entry: store.enter(this.#item, this.#options) };
    this.#turnedAway = undefined; // one entry stands in one line: another select may use this clause at the same time
    const win = (isIn: Granted<T, I>): void => claim.win(isIn === true);
    const wait = new ClauseWait<Granted<T, I>, unknown>(clock.now(), entry, claim, win, (reason) => claim.fail(reason));
    return producers.join(wait, undefined, clock, store.priorityOf(entry));
  }
}

class Elapsing implements SelectClause<undefined> {
  readonly #ms: number;

  constructor(ms: number) {
    this.#ms = ms;
  }

  attempt(): Ready<undefined> | undefined {
    return this.#ms === 0 ? { value: undefined } : undefined;
  }

  join(claim: Claim<undefined>, clock: Clock): Joined {
    return new Countdown(claim, clock, this.#ms);
  }
}

class Countdown implements Joined, TimerTask {
  readonly #claim: Claim<undefined>;
  readonly #timer: Timer | undefined;

  constructor(claim: Claim<undefined>, clock: Clock, ms: number) {
    this.#claim = claim;
    this.#timer = ms === Infinity ? undefined : clock.setTimer(ms, this);
  }

  onTimer(): void {
    if (this.#claim.isDoomed) return this.#claim.abort();
    this.#claim.seize();
    this.#claim.win(undefined);
  }

  leave(): void {
    this.#timer?.cancel();
  }
}

class Aborting implements SelectClause<unknown> {
  readonly #signal: AbortSignal;

  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  attempt(): Ready<unknown> | undefined {
    return this.#signal.aborted ? { value: this.#signal.reason } : undefined;
  }

  join(claim: Claim<unknown>): Joined {
    const watch = new AbortWatch(claim);
    watch.watch(this.#signal);
    return watch;
  }
}

class AbortWatch extends Watcher implements Joined {
  readonly #claim: Claim<unknown>;

  constructor(claim: Claim<unknown>) {
    super();
    this.#claim = claim;
  }

  override onAbort(reason: unknown): void {
    if (this.#claim.isDoomed) return this.#claim.abort();
    this.#claim.seize();
    this.#claim.win(reason);
  }

  leave(): void {
    this.unwatch();
  }
}
