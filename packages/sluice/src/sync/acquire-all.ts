/**
 * Several semaphores or mutexes at once: all of them or none. They are taken one by one in an order that is the same for
 * all callers, whatever the order of their lists, so that no two wait for each other (resource ordering, Dijkstra 1965).
 * Outside of that order is who holds one from elsewhere and asks for others: ask for all of them here.
 */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { TimeoutError } from "../errors.ts";
import { Watcher } from "../internal/abort.ts";
import { checkPriority, checkWait, checkWeight } from "../internal/check.ts";
import { dispose } from "../internal/dispose.ts";
import type { PriorityWaitOptions, WeightedWaitOptions } from "../policy.ts";
import type { Permit } from "./permit.ts";

/** A `Semaphore`, a `Mutex`, or whatever gives permits as they do. */
export interface Acquirable {
  /** The greatest weight it can grant. @default 1 */
  readonly permits?: number | undefined;
  acquire(options?: WeightedWaitOptions): Promise<Permit>;
  tryAcquire(options?: Pick<WeightedWaitOptions, "weight">): Permit | undefined;
}

/** What is listed twice is asked for the sum of the weights. */
export type AcquireAllItem = Acquirable | Readonly<{ from: Acquirable; weight: number }>;

export interface AcquireAllOptions extends PriorityWaitOptions {
  /** Tells how much of `timeoutMs` is left for the next one. @default systemClock */
  readonly clock?: Clock | undefined;
}

/**
 * One permit for all of `items`. While it waits for one, it holds those before it; an abort or a timeout gives them back.
 * @throws RangeError at once if one of them can't grant so much
 */
export function acquireAll(items: readonly AcquireAllItem[], options: AcquireAllOptions = {}): Promise<Permit> {
  try {
    checkWait(options);
    checkPriority(options.priority ?? 0);
    return new Claim(sorted(items), options).start();
  } catch (error) {
    return Promise.reject(error);
  }
}

/** One permit for all of `items` now, or undefined. */
export function tryAcquireAll(items: readonly AcquireAllItem[]): Permit | undefined {
  const wanted = sorted(items);
  const permits = new Permits();
  try {
    if (permits.takeFree(wanted)) return permits;
  } catch (error) {
    permits.release();
    throw error;
  }
  permits.release();
  return undefined;
}

const places = new WeakMap<Acquirable, number>();
let placed = 0;

type Wanted = readonly [from: Acquirable, weight: number];

/** In the order in which they were first seen here, each once. */
function sorted(items: readonly AcquireAllItem[]): Wanted[] {
  const weights = new Map<Acquirable, number>();
  for (const item of items) {
    const { from, weight } = "from" in item ? item : { from: item, weight: 1 };
    weights.set(from, (weights.get(from) ?? 0) + checkWeight(weight, from.permits ?? 1));
    if (!places.has(from)) places.set(from, (placed += 1));
  }
  for (const [from, weight] of weights) checkWeight(weight, from.permits ?? 1);
  return [...weights].toSorted(([a], [b]) => (places.get(a) ?? 0) - (places.get(b) ?? 0));
}

class Permits implements Permit {
  // I1  in the order in which they were taken; empty once they have been given back
  readonly held: Permit[] = [];

  get isHeld(): boolean {
    return this.held.length > 0;
  }

  /** Goes on where it stands, as far as nobody has to wait. Returns whether that was all. */
  takeFree(wanted: readonly Wanted[]): boolean {
    for (const [from, weight] of wanted.slice(this.held.length)) {
      const permit = from.tryAcquire({ weight });
      if (permit === undefined) return false;
      this.held.push(permit);
    }
    return true;
  }

  release(): void {
    for (let permit = this.held.pop(); permit !== undefined; permit = this.held.pop()) permit.release();
  }

  [dispose](): void {
    this.release();
  }
}

class Claim extends Watcher {
  // I1  it waits for wanted[permits.held.length], or it is over
  // I2  once it is over, nothing is held but what the caller has
  readonly result: Promise<Permit>;
  readonly #wanted: readonly Wanted[];
  readonly #options: AcquireAllOptions;
  readonly #clock: Clock;
  readonly #startedAt: number;
  readonly #permits = new Permits();
  #settle: (permit: Permit | Promise<Permit>) => void = () => {};
  #isOver = false;

  constructor(wanted: readonly Wanted[], options: AcquireAllOptions) {
    super();
    this.#wanted = wanted;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#startedAt = this.#clock.now();
    this.result = new Promise((resolve) => (this.#settle = resolve));
  }

  start(): Promise<Permit> {
    const { signal } = this.#options;
    this.#orFail(() => {
      if (this.#permits.takeFree(this.#wanted)) {
        queueMicrotask(() => this.#settle(this.#permits)); // in as many turns as after a wait
        return;
      }
      if (signal !== undefined) this.watch(signal);
      this.#wait();
    });
    return this.result;
  }

  /** Those that are held go back in the turn of the abort; the wait for the next ends by itself. */
  onAbort(reason: unknown): void {
    this.#fail(reason);
  }

  #wait(): void {
    const { signal, timeoutMs = Infinity, priority } = this.#options;
    const leftMs = timeoutMs - (this.#clock.now() - this.#startedAt);
    if (leftMs <= 0) throw new TimeoutError(timeoutMs); // also with 0, which tries once
    const [from, weight] = this.#wanted[this.#permits.held.length] ?? [];
    from?.acquire({ signal, timeoutMs: leftMs, priority, weight }).then(this.#take, this.#refused);
  }

  readonly #take = (permit: Permit): void => {
    if (this.#isOver) return permit.release(); // an abort came between the grant and this turn
    this.#orFail(() => {
      this.#permits.held.push(permit);
      if (!this.#permits.takeFree(this.#wanted)) return this.#wait();
      this.#isOver = true;
      this.unwatch();
      this.#settle(this.#permits);
    });
  };

  readonly #refused = (error: unknown): void => {
    const { timeoutMs = Infinity } = this.#options;
    this.#fail(error instanceof TimeoutError ? new TimeoutError(timeoutMs) : error); // of the whole, not of what was left
  };

  #orFail(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(reason: unknown): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.unwatch();
    this.#permits.release();
    this.#settle(Promise.reject(reason));
  }
}
