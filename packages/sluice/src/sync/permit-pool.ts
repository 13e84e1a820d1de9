/** What `Semaphore`, `Mutex` and `SignalSemaphore` have in common: so many permits, and the line of who waits for some. */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { ClosedError, QueueFullError } from "../errors.ts";
import { checkInteger, checkMs, checkPriority, checkWait, checkWeight } from "../internal/check.ts";
import type { NameOptions } from "../internal/names.ts";
import { notice, probe } from "../internal/probe.ts";
import { asPlainPromise, Wait } from "../internal/wait.ts";
import { WaitList } from "../internal/wait-list.ts";
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
  // I1  #free + what is out = #limit; #free is negative only while a lowered limit is still exceeded
  // I2  whose turn it is waits only while it wants more than #free, or is about to hear of its abort
  // I3  permits go out in the order of the line, `acquire` callers resume in it, no newcomer overtakes a waiter
  // I4  nobody waits for more than #limit; once closed, nobody waits and nothing goes out, but to a `Reclaim`; whoever is
  //     about to hear of its abort hears of nothing else
  readonly #kind: string;
  readonly #owner: object;
  readonly #maxWaiting: number;
  readonly #clock: Clock;
  readonly #waits: WaitList<G, number>;
  #drains: WaitList<void> | undefined;
  #limit: number;
  #free: number;
  #granted = 0;
  #rejected = 0;
  #closed = false;

  constructor(kind: string, owner: object, limit: number, options: LineOptions, free: number = limit) {
    this.#kind = kind;
    this.#owner = owner;
    this.#limit = limit;
    this.#free = free;
    this.#maxWaiting = checkInteger("maxWaiting", options.maxWaiting ?? Infinity, { min: 0, infinity: true });
    this.#clock = options.clock ?? systemClock;
    const agingMs = checkMs("agingMs", options.agingMs ?? 1_000);
    this.#waits = new WaitList<G, number>({ owner, agingMs, onLeave: () => this.#serve() });
  }

  get limit(): number {
    return this.#limit;
  }

  get free(): number {
    return this.#free;
  }

  get waiting(): number {
    return this.#waits.size;
  }

  get closed(): boolean {
    return this.#closed;
  }

  stats(): LineStats {
    const { timedOut, aborted } = this.#waits;
    return {
      waiting: this.waiting,
      oldestWaitMs: this.#waits.oldestWaitMs(this.#clock),
      granted: this.#granted,
      rejected: this.#rejected,
      timedOut,
      aborted,
      closed: this.#closed,
    };
  }

  acquire(options: WeightedWaitOptions = NO_OPTIONS): Promise<G> {
    // Not `async`: a wait would take more turns than the fast path, and resume late (I3).
    try {
      return this.admits(options) ? Promise.resolve(this.lend(options.weight)) : this.wait(options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Takes what is asked for if it can be had at once. Throws for bad options and aborted signals. */
  admits(options: WeightedWaitOptions = NO_OPTIONS): boolean {
    const { weight = 1, priority = 0 } = options;
    if (options !== NO_OPTIONS) this.#check(options, weight, priority);
    if (weight > this.#free || this.#closed) return false;
    if (this.#waits.size > 0 && !this.#waits.wouldBeFirst(priority, this.#clock)) return false;
    this.#take(weight);
    return true;
  }

  /** After `admits` has said no. Throws for who is turned away. */
  wait(options: WeightedWaitOptions = NO_OPTIONS): Promise<G> {
    if (this.#closed) throw this.#refuse(new ClosedError(this.#kind));
    this.#waits.refuseHaste(options);
    if (this.#waits.size >= this.#maxWaiting) throw this.#refuse(new QueueFullError(this.#maxWaiting));
    return this.#waits.wait(options, this.#clock, options.weight ?? 1, options.priority);
  }

  tryTake(weight = 1): boolean {
    if (weight !== 1) checkWeight(weight, this.#limit);
    if (weight > this.#free || this.#waits.size > 0 || this.#closed) return false;
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
    this.#free += weight;
    if (this.#waits.size > 0) this.#serve();
    if (this.#free > this.#limit && this.#waits.size > 0) this.#serveLive();
    return this.#free < this.#limit ? 0 : this.#whenFull();
  }

  /** Those who wait for more than there will be get a `RangeError`. */
  resize(limit: number): void {
    this.#free += limit - this.#limit;
    this.#limit = limit;
    for (const wait of this.#waits.live()) {
      try {
        checkWeight(wait.brought, limit);
      } catch (error) {
        wait.reject(this.#refuse(error as RangeError));
      }
    }
    this.#serve();
  }

  drain(options: WaitOptions): Promise<void> {
    try {
      checkWait(options);
      if (this.#free === this.#limit) return Promise.resolve();
      this.#drains ??= new WaitList<void>();
      this.#drains.refuseHaste(options);
      return this.#drains.wait(options, this.#clock);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** For who gave one back only to wait for a `Condition` and must have it again: no bound and no closing is in the way. */
  reclaim(): Promise<G> {
    if (this.#free > 0 && this.waiting === 0) {
      this.#take(1);
      return Promise.resolve(this.lend());
    }
    return this.#waits.join(new Reclaim<G>(this.#clock.now(), 1), undefined, this.#clock);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    notice?.("closed", this.#owner);
    if (this.waiting === 0) return;
    const error = new ClosedError(this.#kind);
    for (const wait of this.#waits.live()) {
      if (!(wait instanceof Reclaim)) wait.reject(this.#refuse(error));
    }
  }

  /** A method, since a function that each pool had of its own would be a new one to the compiler each time. */
  protected abstract issue(weight: number): G;

  #check(options: WeightedWaitOptions, weight: number, priority: number): void {
    checkWait(options);
    checkWeight(weight, this.#limit);
    checkPriority(priority);
  }

  #take(weight: number): void {
    this.#free -= weight;
    this.#granted += 1;
  }

  /** Stops at one that is about to leave: its leaving serves those behind it, and they may leave by the same abort. */
  #serve(): void {
    const waits = this.#waits;
    for (let next = waits.first; next !== undefined && next.brought <= this.#free; next = waits.first) {
      if (next.isDoomed || (this.#closed && !(next instanceof Reclaim))) return;
      this.#grant(next);
    }
  }

  /** Past those that are about to leave: what goes beyond the limit would be dropped before they have left. */
  #serveLive(): void {
    for (const wait of this.#waits.live()) {
      if (wait.brought > this.#free) return;
      this.#grant(wait);
    }
  }

  #grant(wait: Wait<G, number>): void {
    this.#waits.remove(wait);
    this.#take(wait.brought);
    wait.grant(this.lend(wait.brought, wait)); // handed over in the same turn: nobody can slip in (I3)
  }

  #whenFull(): number {
    const surplus = this.#free - this.#limit;
    this.#free = this.#limit;
    for (const wait of this.#drains?.live() ?? []) {
      this.#drains?.remove(wait);
      wait.grant();
    }
    return surplus;
  }

  #refuse(error: Error): Error {
    this.#rejected += 1;
    notice?.("rejected", this.#owner, error);
    return error;
  }
}

/** Of what `Semaphore` and `Mutex` lend. */
export class LendingPool extends PermitPool<Permit> {
  protected override issue(weight: number): Permit {
    return issuePermit(this, weight);
  }
}

class Reclaim<G> extends Wait<G, number> {}

asPlainPromise(Reclaim);
