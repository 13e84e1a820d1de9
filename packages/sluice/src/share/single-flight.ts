/**
 * One load at a time for each key: who asks while it is under way waits for the same result, so that a hundred callers
 * who miss the same key make one query. Nothing is kept after that: for results that are used again, use `Cache`. For
 * reads only, as two orders must stay two; and the key must name all that the result depends on, tenant and locale too.
 */
import type { Clock } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { KeyCollisionError, SelfWaitError, TimeoutError } from "../errors.ts";
import { checkFunction, checkFunctions, checkMs, checkWait } from "../internal/check.ts";
import { keepModel } from "../internal/model.ts";
import { type NameOptions, register } from "../internal/names.ts";
import { whenSettled } from "../internal/when-settled.ts";
import type { WaitOptions } from "../policy.ts";
import { follow, mayLeave } from "./follow.ts";
import { LoadContext } from "./load-context.ts";
import { loadAround, LoadMark } from "./load-ring.ts";

export interface SingleFlightOptions<I> extends NameOptions {
  /** What identifies the work for `input`: a primitive, or an object that is the same each time. @default the input */
  readonly keyOf?: ((input: I) => unknown) | undefined;
  /** Limits each call of `fn`, whoever waits: then all get `TimeoutError`, and its signal aborts. @default Infinity */
  readonly timeoutMs?: number | undefined;
  /** Who comes later than this after the start of a load gets a newer one. At least 0. @default Infinity */
  readonly maxJoinAgeMs?: number | undefined;
  /**
   * After a failure `fn` is called once more for those who joined, if any of them still wait. Who began the load gets
   * the first error, and nobody else does. @default false
   */
  readonly retryForFollowers?: boolean | undefined;
  /**
   * Whether two inputs of one key ask for the same, which a key that is too coarse doesn't tell: if not, who joins gets
   * `KeyCollisionError`. For development: `isDeepStrictEqual` of `node:util` will do. @default no check
   */
  readonly isSame?: ((input: I, other: I) => boolean) | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

export interface LoadSignal {
  /** Aborts when the last caller has left, or the load's own limit is reached. */
  readonly signal: AbortSignal;
}

export type SingleFlightStats = Readonly<{
  /** Calls of `fn` that have not ended. */
  flights: number;
  /** Of these, the ones that nobody waits for. */
  abandoned: number;
  /** Callers that wait. */
  waiters: number;
  /** Loads that were begun, and callers who joined one instead. */
  started: number;
  joined: number;
  /** How long the oldest flight has been under way. */
  oldestMs: number;
}>;

/** Shares the calls of `fn`, whose synchronous throw is a rejection like any other. */
export function singleFlight<I, V>(
  fn: (input: I, context: LoadSignal) => V | PromiseLike<V>,
  options: SingleFlightOptions<I> = {},
): SingleFlight<I, V> {
  return new SingleFlight(fn, options);
}

export class SingleFlight<I, V> {
  // I1  a flight is in #byKey from the start of its load until that has ended, was forgotten, has become too old to join
  //     for who came then, or nobody waits; in the last three cases it is in #left from then on until it has ended
  // I2  a flight removes itself alone: never the one that came after it
  // I3  the load's signal aborts exactly if nobody waits for it before it has ended
  readonly name: string | undefined;
  readonly #fn: (input: I, context: LoadSignal) => V | PromiseLike<V>;
  readonly #keyOf: ((input: I) => unknown) | undefined;
  readonly #timeoutMs: number;
  readonly #maxJoinAgeMs: number;
  readonly #retries: boolean;
  readonly #isSame: ((input: I, other: I) => boolean) | undefined;
  readonly #clock: Clock;
  readonly #byKey = new Map<unknown, Flight<I, V>>();
  /** Those under way that nobody can join any more. */
  readonly #left = new Set<Flight<I, V>>();
  #started = 0;
  #joined = 0;

  constructor(fn: (input: I, context: LoadSignal) => V | PromiseLike<V>, options: SingleFlightOptions<I> = {}) {
    checkFunction("fn", fn);
    checkFunctions(options, ["keyOf", "isSame"]);
    this.#fn = fn;
    this.#keyOf = options.keyOf;
    this.#timeoutMs = checkMs("timeoutMs", options.timeoutMs ?? Infinity);
    this.#maxJoinAgeMs = checkMs("maxJoinAgeMs", options.maxJoinAgeMs ?? Infinity);
    this.#retries = options.retryForFollowers ?? false;
    this.#isSame = options.isSame;
    this.#clock = options.clock ?? systemClock;
    this.name = options.name;
    register("single-flight", options, this);
  }

  stats(): SingleFlightStats {
    const now = this.#clock.now();
    let [waiters, abandoned, oldestMs] = [0, 0, 0];
    for (const { leader, followers, startedAt } of [...this.#byKey.values(), ...this.#left]) {
      waiters += leader + followers;
      if (leader + followers === 0) abandoned += 1;
      oldestMs = Math.max(oldestMs, now - startedAt);
    }
    const flights = this.#byKey.size + this.#left.size;
    return { flights, abandoned, waiters, started: this.#started, joined: this.#joined, oldestMs };
  }

  /** Whether who asks for this input now would join. */
  has(input: I): boolean {
    const flight = this.#byKey.get(this.#key(input));
    return flight !== undefined && this.#isYoung(flight);
  }

  /**
   * The result of the load that is under way for this key, or of a new one, which is called at once. An abort or the
   * caller's own `timeoutMs` ends this wait only; the load is aborted when nobody else waits. With `timeoutMs` 0 it
   * rejects, since no load is there at once. Who asks from within the load itself gets `SelfWaitError`, where the
   * runtime knows: in Node from 24 on.
   */
  load(input: I, options?: WaitOptions): Promise<V> {
    try {
      if (options !== undefined) checkWait(options);
      if (options?.timeoutMs === 0) throw new TimeoutError(0);
      const key = this.#key(input);
      const found = this.#byKey.get(key);
      if (found === undefined || !this.#isYoung(found)) return this.#start(key, found, input, options);
      return this.#join(key, found, input, options);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Who asks from now on gets a new load. Those who wait go on waiting. */
  forget(input: I): void {
    const key = this.#key(input);
    this.#part(key, this.#byKey.get(key));
  }

  #key(input: I): unknown {
    return this.#keyOf === undefined ? input : this.#keyOf(input);
  }

  #isYoung({ startedAt }: Flight<I, V>): boolean {
    return this.#maxJoinAgeMs === Infinity || this.#now() - startedAt <= this.#maxJoinAgeMs;
  }

  /** Exact where something hangs on it: reading it so takes a twentieth of a load. */
  #now(): number {
    const clock = this.#clock;
    return this.#maxJoinAgeMs === Infinity && clock.coarseNow !== undefined ? clock.coarseNow() : clock.now();
  }

  #start(key: unknown, old: Flight<I, V> | undefined, input: I, options: WaitOptions | undefined): Promise<V> {
    const flight = new Flight<I, V>(input, this.#now(), this.#retries);
    this.#part(key, old);
    this.#byKey.set(key, flight); // before the call, which may come back here
    this.#started += 1;
    flight.mark.admit(flight.asker);
    flight.result = this.#call(key, flight);
    if (!mayLeave(options)) return flight.result;
    return follow(flight.result, options, this.#clock, (reason) => {
      flight.dismissLeader();
      this.#leave(key, flight, reason);
    });
  }

  #join(key: unknown, flight: Flight<I, V>, input: I, options: WaitOptions | undefined): Promise<V> {
    const { result } = flight;
    if (this.#isSame?.(input, flight.input) === false) throw new KeyCollisionError(key);
    const asker = loadAround();
    if (result === undefined || !flight.mark.admit(asker)) throw new SelfWaitError("flight");
    flight.shared ??= this.#retries ? whenSettled(result, same, (error) => this.#again(key, flight, error)) : result;
    flight.followers += 1;
    this.#joined += 1;
    if (!mayLeave(options)) return flight.shared;
    return follow(flight.shared, options, this.#clock, (reason) => {
      if (flight.followers > 0) flight.followers -= 1; // else all have been given up
      flight.mark.dismiss(asker);
      this.#leave(key, flight, reason);
    });
  }

  #call(key: unknown, flight: Flight<I, V>): Promise<V> {
    const result = whenSettled(
      this.#fly(flight),
      (value) => {
        this.#land(key, flight);
        return value;
      },
      (error) => {
        flight.dismissLeader();
        flight.mayRetry &&= flight.followers > 0;
        if (!flight.mayRetry) this.#land(key, flight);
        throw error;
      },
    );
    if (this.#timeoutMs === Infinity) return result;
    return follow(result, { timeoutMs: this.#timeoutMs }, this.#clock, (reason) => this.#abandon(key, flight, reason));
  }

  #fly(flight: Flight<I, V>): V | PromiseLike<V> {
    try {
      return flight.mark.run(() => this.#fn(flight.input, flight));
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** What those who joined get after the first failure. */
  #again(key: unknown, flight: Flight<I, V>, error: unknown): Promise<V> {
    if (!flight.mayRetry) throw error;
    flight.mayRetry = false;
    if (flight.followers > 0) return this.#call(key, flight);
    this.#land(key, flight); // they have left since
    throw error;
  }

  #leave(key: unknown, flight: Flight<I, V>, reason: unknown): void {
    if (flight.leader + flight.followers === 0 && !flight.mark.isOver) this.#abandon(key, flight, reason);
  }

  /** A load that is about to end is joined by nobody. */
  #abandon(key: unknown, flight: Flight<I, V>, reason: unknown): void {
    flight.leader = flight.followers = 0;
    flight.mark.dismissAll();
    this.#part(key, flight);
    LoadContext.abort(flight, reason);
  }

  #land(key: unknown, flight: Flight<I, V>): void {
    flight.mark.isOver = true;
    if (this.#byKey.get(key) === flight) this.#byKey.delete(key);
    else this.#left.delete(flight);
  }

  /** From now on nobody joins it. */
  #part(key: unknown, flight: Flight<I, V> | undefined): void {
    if (flight === undefined || this.#byKey.get(key) !== flight) return;
    this.#byKey.delete(key);
    this.#left.add(flight);
  }
}

/** A load that is under way, and who waits for it. */
class Flight<I, V> extends LoadContext {
  readonly input: I;
  readonly startedAt: number;
  readonly mark = new LoadMark();
  /** The load that began it, if one did. */
  readonly asker = loadAround();
  /** 1 while who began it waits. */
  leader = 1;
  followers = 0;
  /** Whether a failure is followed by a second call, or was and is about to be. */
  mayRetry: boolean;
  /** What who began it gets: undefined while `fn` is called. */
  result: Promise<V> | undefined;
  /** What those who join get. */
  shared: Promise<V> | undefined;

  constructor(input: I, startedAt: number, mayRetry: boolean) {
    super();
    this.input = input;
    this.startedAt = startedAt;
    this.mayRetry = mayRetry;
  }

  dismissLeader(): void {
    this.leader = 0;
    this.mark.dismiss(this.asker);
  }
}

function same<T>(value: T): T {
  return value;
}

keepModel(new SingleFlight(Object));
keepModel(new Flight(undefined, 0, false));
