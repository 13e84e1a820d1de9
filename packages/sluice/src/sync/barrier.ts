/**
 * Cyclic barrier: the parties of a round wait for each other, then all go on together, round after round. Parties may
 * come and go. If one fails, aborts or times out, the round is broken for everybody. For one round use `Latch`.
 * Rounds and their all-or-none breaking are those of Java's CyclicBarrier, changing parties those of its Phaser.
 */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { BrokenBarrierError, MiscountError } from "../errors.ts";
import { checkFunction, checkInteger, checkMs, checkSignal } from "../internal/check.ts";
import { type NameOptions, register } from "../internal/names.ts";
import { notice, probe } from "../internal/probe.ts";
import { WaitList } from "../internal/wait-list.ts";
import { isThenable, whenSettled } from "../internal/when-settled.ts";
import type { RunContext, WaitOptions } from "../policy.ts";
import {
  type BarrierContext,
  type BarrierParty,
  type BarrierPass,
  issueParty,
  type PartyHost,
  type RegisteredParty,
} from "./barrier-party.ts";

export interface BarrierOptions extends NameOptions {
  /**
   * Called once a round, after the last arrival and before anybody goes on, with the round's generation. They wait for
   * what it returns; if it fails, the round is broken.
   */
  readonly action?: ((generation: number) => unknown) | undefined;
  /** Runs `timeoutMs` and tells ages. @default systemClock */
  readonly clock?: Clock | undefined;
}

export type BarrierStats = Readonly<{
  parties: number;
  /** Parties of this round that are there. At rest it is 0: what stays above is waiting for somebody who is missing. */
  arrived: number;
  /** Which round this is; the first is 0. */
  generation: number;
  /** Who has still to come: the registered by name, the others by number. */
  missing: string;
  waiting: number;
  /** Age of the longest wait that goes on; 0 if nobody waits. */
  oldestWaitMs: number;
  /** The last round is full, and its action runs. */
  acting: boolean;
  /** Rounds that were completed. */
  rounds: number;
  broken: boolean;
  /** How many times it has been broken, resets while somebody waited included. */
  breaks: number;
  /** Arrivals of more parties than there are: while the action of a full round ran, or the second of one party in a round. */
  extra: number;
  timedOut: number;
  aborted: number;
}>;

/** A round that is full and whose action runs. */
interface Acting {
  readonly generation: number;
  /** By which the wait of its last party is known, if that waits. */
  readonly last: BarrierPass | undefined;
  broken: BrokenBarrierError | undefined;
}

export class Barrier {
  // I1  #arrived < parties, or parties = 0, or an action runs, or one of the round is about to hear of its abort
  // I2  #generation grows with each round that fills up or breaks; a wait is granted in its own generation only
  // I3  of the waits of one generation all are granted or none is, but for those whose own signal or timer ended them
  // I4  while #broken is set, nobody waits but those who are about to hear of their abort
  // I5  one action at a time
  readonly name: string | undefined;
  readonly #action: ((generation: number) => unknown) | undefined;
  readonly #clock: Clock;
  readonly #waiters: WaitList<BarrierPass, BarrierPass>;
  readonly #registered = new Set<RegisteredParty>();
  readonly #host: PartyHost;
  /** By which a party is told of a break, and which it must not take for one more. */
  readonly #told = new WeakSet<object>();
  #parties: number;
  #arrived = 0;
  #generation = 0;
  #acting: Acting | undefined;
  #broken: BrokenBarrierError | undefined;
  #rounds = 0;
  #breaks = 0;
  #extra = 0;
  #names = 0;

  /** For so many parties from the start, not counting those that register: an integer >= 0. */
  constructor(parties: number, options: BarrierOptions = {}) {
    this.#parties = checkInteger("parties", parties, { min: 0 });
    this.#action = options.action;
    if (this.#action !== undefined) checkFunction("action", this.#action);
    this.#clock = options.clock ?? systemClock;
    this.#waiters = new WaitList<BarrierPass, BarrierPass>({
      owner: this,
      onLeave: ({ generation }, reason) => this.#onLeave(generation, reason),
    });
    this.#host = {
      arriveAndWait: (waitOptions, party) => this.#arriveAndWait(waitOptions, party),
      arrive: (party) => this.#arriveOnly(party),
      deregister: (party) => this.#deregister(party),
    };
    this.name = options.name;
    register("barrier", options, this);
  }

  get parties(): number {
    return this.#parties;
  }

  get arrived(): number {
    return this.#arrived;
  }

  get generation(): number {
    return this.#generation;
  }

  get waiting(): number {
    return this.#waiters.size;
  }

  get isBroken(): boolean {
    return this.#broken !== undefined;
  }

  stats(): BarrierStats {
    const { parties, arrived, generation, waiting, isBroken: broken } = this;
    const { timedOut, aborted } = this.#waiters;
    const [rounds, breaks, extra] = [this.#rounds, this.#breaks, this.#extra];
    const oldestWaitMs = this.#waiters.oldestWaitMs(this.#clock);
    const missing = this.#missing();
    return {
      parties,
      arrived,
      generation,
      missing,
      waiting,
      oldestWaitMs,
      acting: this.#full() !== undefined,
      rounds,
      broken,
      breaks,
      extra,
      timedOut,
      aborted,
    };
  }

  /**
   * Arrives, and waits for the others. A wait that aborts or times out breaks the barrier: the others of the round, and
   * all who come until `reset`, get `BrokenBarrierError`. So does a call whose signal has aborted already. With
   * `timeoutMs` 0 only the last party arrives, and waits for the action as long as that takes; to any other it is as if
   * it had not called. The last party gets the action's error if it fails.
   */
  wait(options: WaitOptions = {}): Promise<BarrierPass> {
    return this.#arriveAndWait(options, undefined);
  }

  /** Arrives without waiting for the others, and returns the round's generation. Throws `BrokenBarrierError`. */
  arrive(): number {
    return this.#arriveOnly(undefined);
  }

  /** One party more, from this round on. Its name is what `stats` calls it while it is missing. */
  register(name?: string): BarrierParty {
    this.#names += 1;
    const party = issueParty(name ?? `party ${this.#names}`, this.#host);
    this.#registered.add(party);
    this.#parties += 1;
    return party;
  }

  /** One party fewer of those it was made for. If the others are all there, that completes their round. */
  deregister(): void {
    if (this.#unnamedMissing() <= 0) throw this.#miscount("nobody who has not arrived can leave");
    this.#parties -= 1;
    this.#advance();
  }

  /**
   * Calls `fn` as one party more, which leaves when `fn` has ended. If `fn` fails, the barrier breaks for the others,
   * who would wait for this party in vain; but not once more if it fails by being told that the barrier was broken.
   */
  async run<T>(fn: (context: BarrierContext) => T | PromiseLike<T>, { signal }: Partial<RunContext> = {}): Promise<T> {
    checkSignal(signal);
    signal?.throwIfAborted();
    const party = this.register();
    try {
      return await fn({ signal, party });
    } catch (error) {
      if (!this.#told.has(error as object)) this.fail(error);
      throw error;
    } finally {
      party.deregister();
    }
  }

  /** Breaks it: all who wait, and all who come until `reset`, get `BrokenBarrierError` with this cause. */
  fail(cause: unknown): void {
    this.#broken ??= this.#breakRound(cause);
  }

  /** Begins a new round, also after it was broken. Who still waits gets `BrokenBarrierError`. */
  reset(): void {
    const isIdle = this.#arrived === 0 && this.#acting === undefined;
    if (this.#broken === undefined && !isIdle) this.#breakRound(new Error("the barrier was reset"));
    this.#broken = undefined;
  }

  #arriveAndWait(options: WaitOptions, party: RegisteredParty | undefined): Promise<BarrierPass> {
    try {
      const { signal, timeoutMs = Infinity } = options;
      checkMs("timeoutMs", timeoutMs);
      checkSignal(signal);
      if (signal?.aborted === true) this.fail(signal.reason);
      signal?.throwIfAborted();
      this.#checkArrival(party);
      const pass = { generation: this.#generation, index: this.#arrived };
      const isLast = this.#isComplete(this.#arrived + 1);
      if (!isLast) this.#waiters.refuseHaste(options);
      const isOnItsWay = isLast && this.#action === undefined;
      const limitMs = timeoutMs === 0 ? Infinity : timeoutMs;
      const wait = isOnItsWay
        ? Promise.resolve(pass)
        : this.#waiters.wait({ signal, timeoutMs: limitMs }, this.#clock, pass);
      this.#countArrival(party);
      if (isLast) this.#trip(pass);
      return wait;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #arriveOnly(party: RegisteredParty | undefined): number {
    this.#checkArrival(party);
    const generation = this.#generation;
    this.#countArrival(party);
    this.#advance();
    return generation;
  }

  #checkArrival(party: RegisteredParty | undefined): void {
    if (this.#broken !== undefined) throw this.#broken;
    if (this.#parties === 0) throw this.#miscount("nobody is to arrive");
    const full = this.#full();
    if (party === undefined) {
      if (full !== undefined) this.#extra += 1;
      return;
    }
    if (!this.#registered.has(party)) throw this.#miscount(`${party.name} has left`);
    if (party.arrivedIn !== this.#generation && party.arrivedIn !== full) return;
    this.#extra += 1;
    throw this.#miscount(`${party.name} has arrived already`);
  }

  #countArrival(party: RegisteredParty | undefined): void {
    this.#arrived += 1;
    probe?.arrived(this, this.#parties);
    if (party !== undefined) party.arrivedIn = this.#generation;
  }

  #deregister(party: RegisteredParty): void {
    if (!this.#registered.delete(party)) return;
    this.#parties -= 1;
    if (party.arrivedIn === this.#generation) this.#arrived -= 1;
    this.#advance();
  }

  /** Not while somebody is about to hear of its abort, which will break the round. */
  #isComplete(arrived: number): boolean {
    if (arrived < this.#parties || this.#acting !== undefined) return false;
    if (this.#parties === 0 && this.waiting === 0) return false; // but who waits when the last party leaves goes on
    return this.#waiters.live().length === this.#waiters.size;
  }

  #advance(): void {
    // Nobody is the last party to be told of the action's error: it is the cause of what the others are told.
    if (this.#isComplete(this.#arrived)) this.#trip(undefined);
  }

  /** The round is complete. */
  #trip(last: BarrierPass | undefined): void {
    const acting: Acting = { generation: this.#generation, last, broken: undefined };
    this.#generation += 1;
    this.#arrived = 0;
    if (this.#action === undefined) return this.#letThrough(acting.generation);
    this.#acting = acting;
    let result: unknown;
    try {
      result = this.#action(acting.generation);
    } catch (error) {
      return this.#failAction(acting, error);
    }
    if (!isThenable(result)) return this.#endAction(acting);
    void whenSettled(
      result,
      () => this.#endAction(acting),
      (error) => this.#failAction(acting, error),
    );
  }

  #endAction(acting: Acting): void {
    this.#acting = undefined;
    if (acting.broken === undefined) this.#letThrough(acting.generation);
    this.#advance(); // those who came meanwhile may be all
  }

  #failAction(acting: Acting, error: unknown): void {
    if (acting.broken === undefined) {
      const last = this.#waiters.live().find(({ brought }) => brought === acting.last);
      last?.reject(error); // whose leaving breaks the round for the others
      this.fail(error);
    } else notice?.("failed", this, error); // all have been told of another cause
    this.#acting = undefined;
    this.#advance(); // it may have been reset meanwhile, and be full again
  }

  #letThrough(generation: number): void {
    this.#rounds += 1;
    for (const wait of this.#waiters.live()) {
      if (wait.brought.generation !== generation) continue;
      this.#waiters.remove(wait);
      wait.grant(wait.brought);
    }
  }

  #onLeave(generation: number, reason: unknown): void {
    if (generation === this.#generation || generation === this.#full()) this.fail(reason);
  }

  #breakRound(cause: unknown): BrokenBarrierError {
    const full = this.#full();
    const missing = full === undefined ? this.#missing() : "";
    const error = new BrokenBarrierError(full ?? this.#generation, missing, { cause });
    this.#told.add(error);
    this.#breaks += 1;
    this.#generation += 1;
    this.#arrived = 0;
    if (this.#acting !== undefined) this.#acting.broken ??= error;
    for (const wait of this.#waiters.live()) wait.reject(error);
    return error;
  }

  /** The generation whose action runs, unless it was broken meanwhile. */
  #full(): number | undefined {
    return this.#acting?.broken === undefined ? this.#acting?.generation : undefined;
  }

  #missing(): string {
    const names = this.#absent().map(({ name }) => name);
    const unnamed = this.#unnamedMissing();
    return (unnamed > 0 ? [...names, `${unnamed} unnamed`] : names).join(", ");
  }

  #unnamedMissing(): number {
    return this.#parties - this.#arrived - this.#absent().length;
  }

  #absent(): RegisteredParty[] {
    return [...this.#registered].filter(({ arrivedIn }) => arrivedIn !== this.#generation);
  }

  #miscount(why: string): MiscountError {
    return new MiscountError(why, this.#parties, this.#arrived);
  }
}
