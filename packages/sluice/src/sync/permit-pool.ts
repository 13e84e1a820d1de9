/** What `Semaphore`, `Mutex` and `SignalSemaphore` have in common: so many permits, and the line of who waits for some. */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { ClosedError, QueueFullError } from "../errors.ts";
import { checkInteger, checkMs, checkPriority, checkWait, checkWeight } from "../internal/check.ts";
import type { NameOptions } from "../internal/names.ts";
import { PriorityWaitList } from "../internal/priority-wait-list.ts";
import { notice, probe } from "../internal/probe.ts";
import type { Wait } from "../internal/wait.ts";
import { grantAll, WaitList } from "../internal/wait-list.ts";
import type { WaitOptions, WeightedWaitOptions } from "../policy.ts";
import { issuePermit, type Lender, type Permit } from "./permit.ts";

export interface LineOptions extends NameOptions {
  /** Callers allowed to wait; the next one gets `QueueFullError`. Each is held by its caller. An integer >= 0. @default Infinity */
  readonly maxWaiting?: number | undefined;
  /**
   * A wait gains one step of priority each time it has waited for this long, so that a low priority starves nobody. At
   * least 0; `Infinity` for never. @default 1_000
   */
  readonly agingMs?: number | undefined;
  /** Runs `timeoutMs` and tells ages. @default systemClock */
  readonly clock?: Clock | undefined;
}

export type LineStats = Readonly<{
  waiting: number;
  /** Age of the longest wait that goes on; 0 if nobody waits. */
  oldestWaitMs: number;
  /** Calls that were given what they asked for. */
  granted: number;
  /** Calls turned away because too many waited or it was closed, those that waited when it closed included. */
  rejected: number;
  /** Calls that got nothing, because of their `timeoutMs` or because their signal aborted while they waited. */
  timedOut: number;
  aborted: number;
  closed: boolean;
}>;

const NO_OPTIONS: WeightedWaitOptions = {};

/** `G` is what a call is granted. */
export abstract class PermitPool<G> implements Lender {
  // I1  free + what is out = limit; free is negative only while a lowered limit is still exceeded
  // I2  whose turn it is waits only while it wants more than what is free, or is about to hear of its abort
  // I3  permits go out in the order of the line, `acquire` callers resume in it, no newcomer overtakes a waiter
  // I4  nobody waits for more than the limit; once closed, nobody waits and nothing goes out, but to who entered past it;
  //     whoever is about to hear of its abort hears of nothing else
  // Written here alone:
  limit: number;
  free: number;
  closed = false;
  protected readonly clock: Clock;
  readonly #kind: string;
  readonly #owner: object;
  readonly #maxWaiting: number;
  readonly #waits: PriorityWaitList<G, number>;
  #drains: WaitList<void> | undefined;
  #granted = 0;
  #rejected = 0;
  #isClosing = false;

  constructor(kind: string, owner: object, limit: number, options: LineOptions, free: number = limit) {
    this.#kind = kind;
    this.#owner = owner;
    this.limit = limit;
    this.free = free;
    this.clock = options.clock ?? systemClock;
    this.#maxWaiting = checkInteger("maxWaiting", options.maxWaiting ?? Infinity, { min: 0, infinity: true });
    const agingMs = checkMs("agingMs", options.agingMs ?? 1_000);
    this.#waits = new PriorityWaitList<G, number>({ owner, agingMs, onLeave: () => this.#serve() });
  }

  get waiting(): number {
    return this.#waits.size;
  }

  stats(): LineStats {
    const { size, timedOut, aborted } = this.#waits;
    return {
      waiting: size,
      oldestWaitMs: this.#waits.oldestWaitMs(this.clock),
      granted: this.#granted,
      rejected: this.#rejected,
      timedOut,
      aborted,
      closed: this.closed,
    };
  }

  acquire(options?: WeightedWaitOptions): Promise<G> {
    // Not `async`: a wait would take more turns than the fast path, and resume late (I3).
    if (options === undefined && this.tryTake()) return Promise.resolve(this.lend());
    try {
      return this.admits(options) ? Promise.resolve(this.lend(options?.weight)) : this.wait(options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Takes what is asked for if it can be had at once. Throws for bad options and aborted signals. */
  admits(options: WeightedWaitOptions = NO_OPTIONS): boolean {
    const { weight = 1, priority = 0 } = options;
    if (options !== NO_OPTIONS) {
      checkWait(options);
      checkWeight(weight, this.limit);
      checkPriority(priority);
    }
    if (weight > this.free || this.closed) return false;
    if (this.#waits.size > 0 && !this.#waits.wouldBeFirst(priority, this.clock)) return false;
    this.#take(weight);
    return true;
  }

  /** After `admits` has said no. Throws for who is turned away. */
  wait(options: WeightedWaitOptions = NO_OPTIONS): Promise<G> {
    if (this.closed) throw this.#refuse(new ClosedError(this.#kind));
    this.#waits.refuseHaste(options);
    if (this.#waits.size >= this.#maxWaiting) throw this.#refuse(new QueueFullError(this.#maxWaiting));
    return this.#waits.wait(options, this.clock, options.weight ?? 1, options.priority);
  }

  tryTake(weight = 1): boolean {
    if (weight !== 1) checkWeight(weight, this.limit);
    if (weight > this.free || this.#waits.size > 0 || this.closed) return false;
    this.#take(weight);
    return true;
  }

  /** What stands for so many that have been taken, by a call or for a wait. */
  lend(weight = 1, wait?: object): G {
    const granted = this.issue(weight);
    probe?.took(this.#owner, granted, weight, wait);
    return granted;
  }

  /** Returns how much of it was dropped, since nobody waits for it and there is no room. */
  giveBack(weight: number): number {
    this.free += weight;
    if (this.#waits.size > 0) this.#serve();
    if (this.free < this.limit || (this.free === this.limit && this.#drains === undefined)) return 0;
    // Also past those that are about to leave: what goes beyond the limit would be dropped before they have left.
    if (this.free > this.limit) this.#serveAll(this.#waits.live());
    return this.free < this.limit ? 0 : this.#whenFull();
  }

  /** Those who wait for more than there will be get a `RangeError`. */
  resize(limit: number): void {
    this.free += limit - this.limit;
    this.limit = limit;
    for (const wait of this.#waits.live()) {
      try {
        checkWeight(wait.brought, limit);
      } catch (error) {
        this.#turnAway(wait, error as RangeError);
      }
    }
    this.#serve();
  }

  drain(options: WaitOptions): Promise<void> {
    try {
      checkWait(options);
      if (this.free === this.limit) return Promise.resolve();
      this.#drains ??= new WaitList<void>();
      this.#drains.refuseHaste(options);
      return this.#drains.wait(options, this.clock);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  close(): void {
    if (this.closed) return;
    this.closed = this.#isClosing = true;
    notice?.("closed", this.#owner);
    const error = new ClosedError(this.#kind);
    for (const wait of this.#waits.live()) this.#turnAway(wait, error);
    this.#isClosing = false;
    this.#serve();
  }

  /** Lines up what the caller has made, however many wait and though it is closed. */
  protected enter(wait: Wait<G, number>): Promise<G> {
    const granted = this.#waits.join(wait, undefined, this.clock);
    this.#serve();
    return granted;
  }

  /** A method, since a function that each pool had of its own would be a new one to the compiler each time. */
  protected abstract issue(weight: number): G;

  #take(weight: number): void {
    this.free -= weight;
    this.#granted += 1;
  }

  /** Stops at one that is about to leave: its leaving serves those behind it, and they may leave by the same abort. */
  #serve(): void {
    const waits = this.#waits;
    for (let next = waits.first; next !== undefined && next.brought <= this.free; next = waits.first) {
      if (next.isDoomed || this.#isClosing) return;
      this.#grant(next);
    }
  }

  #serveAll(waits: readonly Wait<G, number>[]): void {
    for (const wait of waits) {
      if (wait.brought > this.free) return;
      this.#grant(wait);
    }
  }

  #grant(wait: Wait<G, number>): void {
    this.#waits.remove(wait);
    this.#take(wait.brought);
    wait.grant(this.lend(wait.brought, wait)); // handed over in the same turn: nobody can slip in (I3)
  }

  #whenFull(): number {
    const surplus = this.free - this.limit;
    this.free = this.limit;
    if (this.#drains !== undefined) grantAll(this.#drains);
    return surplus;
  }

  #turnAway(wait: Wait<G, number>, error: Error): void {
    wait.reject(error);
    if (wait.lane === undefined) this.#refuse(error);
  }

  #refuse(error: Error): Error {
    this.#rejected += 1;
    notice?.("rejected", this.#owner, error);
    return error;
  }
}

/** Of what `Semaphore` lends. */
export class LendingPool extends PermitPool<Permit> {
  protected override issue(weight: number): Permit {
    return issuePermit(this, weight);
  }
}
