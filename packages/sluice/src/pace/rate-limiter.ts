/**
 * Rate limiter: at most so many starts per unit of time, as a token bucket or by another rule, and callers start in the
 * order they arrived. For a limit for each user, use `KeyedRateLimiter`; for a bound on how much runs at once,
 * `Semaphore` or `Limiter`; where the state must survive a restart, `gcra`.
 */
import type { Clock, Timer, TimerTask } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { RateLimitedError } from "../errors.ts";
import { checkInteger, checkMs, checkWait } from "../internal/check.ts";
import { type NameOptions, register } from "../internal/names.ts";
import { notice } from "../internal/probe.ts";
import { asPlainPromise, Wait } from "../internal/wait.ts";
import { firstLive, WaitList } from "../internal/wait-list.ts";
import type { Policy, Task, WaitOptions } from "../policy.ts";
import { checkCost, type RateRule } from "./rate-rule.ts";
import { TokenBucket, type TokenBucketLimit } from "./token-bucket.ts";

export interface RateLineOptions extends NameOptions {
  /** Callers allowed to wait; the next one gets `RateLimitedError`. An integer >= 0. @default Infinity */
  readonly maxWaiting?: number | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

/** The limit of a token bucket, or a rule of another kind. */
export type RateLimiterOptions = RateLineOptions & (TokenBucketLimit | { readonly rule: RateRule });

export interface RateLimiterTakeOptions extends WaitOptions {
  /** Tokens, from 1 to as many as may ever start at once, such as `burst`. @default 1 */
  readonly cost?: number | undefined;
}

export interface RateReservation {
  /** When its turn comes, by the clock, as things stood when it was made. */
  readonly readyAt: number;
  /** How long that was from then; 0 if its turn had come. */
  readonly waitMs: number;
  /**
   * Resolves when its turn has really come: sooner if somebody ahead gives up, later if the rate is lowered. Never once
   * it is cancelled.
   */
  readonly ready: Promise<void>;
  /**
   * It won't be used: its place in line is free, or what it took goes back, but for what would have flowed back since.
   * Those behind it move up. False if it was cancelled before.
   */
  cancel(): boolean;
  /**
   * What was really used, for who could only estimate the cost, such as the tokens of an answer: what was reserved beyond
   * that goes back as by `cancel`, and what was used beyond that is taken, too, though it isn't there: who comes later
   * waits for it. `used` is an integer >= 0. False before its turn has come, or if it was settled or cancelled before.
   */
  settle(used: number): boolean;
}

export type RateLimiterStats = Readonly<{
  waiting: number;
  /** Age of the longest wait that goes on; 0 if nobody waits. */
  oldestWaitMs: number;
  /** Takes that got their tokens. */
  granted: number;
  /** Takes turned away: there were none, or none to come in time, or too many waited. */
  rejected: number;
  /** Takes that got nothing, because of their `timeoutMs` or because their signal aborted while they waited. */
  timedOut: number;
  aborted: number;
}>;

export class RateLimiter implements Policy {
  // I1  tokens go out only when the rule allows it by the clock as it is then, whatever woke us
  // I2  tokens go out in arrival order: while somebody waits, no newcomer takes one
  // I3  a timer is set while somebody waits, but for who is about to hear of its abort
  readonly name: string | undefined;
  readonly #rule: RateRule;
  readonly #maxWaiting: number;
  readonly #clock: Clock;
  readonly #waits: WaitList<void, number>;
  /** Tokens that all who wait want together. */
  #queued = 0;
  #pausedUntil = -Infinity;
  #timer: Timer | undefined;
  readonly #task: TimerTask = { onTimer: () => this.#serve(EARLY_MS) };
  #granted = 0;
  #rejected = 0;

  constructor(options: RateLimiterOptions) {
    this.#rule = "rule" in options ? options.rule : new TokenBucket(options);
    this.#maxWaiting = checkInteger("maxWaiting", options.maxWaiting ?? Infinity, { min: 0, infinity: true });
    this.#clock = options.clock ?? systemClock;
    this.#waits = new WaitList<void, number>({ owner: this, onLeave: (cost) => this.#onLeave(cost) });
    this.name = options.name;
    register("rate-limiter", options, this);
  }

  get waiting(): number {
    return this.#waits.size;
  }

  stats(): RateLimiterStats {
    const { timedOut, aborted } = this.#waits;
    return {
      waiting: this.waiting,
      oldestWaitMs: this.#waits.oldestWaitMs(this.#clock),
      granted: this.#granted,
      rejected: this.#rejected,
      timedOut,
      aborted,
    };
  }

  /** How long until `cost` tokens will be there, if all that wait stay; 0 if `tryTake` would succeed. */
  retryAfterMs(cost = 1): number {
    const now = this.#clock.now();
    return Math.max(this.waiting > 0 ? EARLY_MS : 0, this.#turnAt(cost, now) - now);
  }

  /**
   * Calls `fn` once its tokens are there: at once, or after those who came before. They come back only if it isn't
   * called. As `take`, it never waits for what can't come in time.
   */
  async run<T>(fn: Task<T>, options: RateLimiterTakeOptions = {}): Promise<T> {
    const { cost, signal } = options;
    if (!this.#admits(options)) await this.#wait(options, cost);
    if (signal?.aborted === true) this.adjust(cost ?? 1, Infinity, 0, 1); // the abort may have come between the grant and this turn
    signal?.throwIfAborted();
    return await fn({ signal });
  }

  /**
   * Resolves once `cost` tokens have been taken, first come, first served. They are not given back. What can't come
   * within `timeoutMs` isn't waited for.
   * @throws RateLimitedError at once if it would come too late, or too many wait; TimeoutError with a `timeoutMs` of 0,
   * or if the turn came in sight, but was put off by a lower rate or a pause
   */
  take(options: RateLimiterTakeOptions = {}): Promise<void> {
    try {
      return this.#admits(options) ? Promise.resolve() : this.#wait(options, options.cost);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** Takes `cost` tokens now, or none. Overtakes nobody: false while others wait. */
  tryTake(cost = 1): boolean {
    const isTaken = this.#tryTake(cost);
    if (!isTaken) this.#refuse(undefined);
    return isTaken;
  }

  /**
   * A place in line that knows when its turn comes, for who wants to decide by that whether to wait.
   * @throws RateLimitedError if too many wait
   */
  reserve(cost = 1): RateReservation {
    const now = this.#clock.now();
    const waitMs = this.retryAfterMs(cost);
    const place = new Place(now, cost);
    if (this.#tryTake(cost)) place.grantAt(now);
    else void this.#wait({}, cost, place);
    const cancel = (): boolean => this.#cancel(place);
    return { readyAt: now + waitMs, waitMs, ready: place, cancel, settle: (used) => this.#settle(place, used) };
  }

  /** Nobody starts for so long from now, such as after an answer that says `Retry-After`. Finite, at least 0. */
  pauseFor(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, this.#clock.now() + checkMs("ms", ms, { min: 0 }));
    this.#serve();
  }

  /**
   * Another limit from now on, for those who wait, too. What is left of the old one is neither lost nor more than the new
   * one holds; without `burst` that stays as it is. Who waits for more than may ever start at once gets a `RangeError`.
   */
  setRate(limit: TokenBucketLimit): void {
    if (this.#rule.setRate === undefined) throw new TypeError("the rule has no rate that could be set");
    this.#rule.setRate(limit, this.#clock.now());
    for (const wait of this.#waits.live()) {
      try {
        checkCost(wait.brought, this.#rule.maxCost);
      } catch (error) {
        wait.reject(this.#refuse(error as RangeError));
      }
    }
    this.#serve();
  }

  /** Called when nobody waits any more. */
  protected onIdle(): void {}

  /**
   * Of what was taken at `takenAt`, `cost` don't start; less than 0 if more did than were taken. `grants` are the takes
   * that don't count any more.
   */
  protected adjust(cost: number, takenAt: number, used: number, grants: number): void {
    const now = this.#clock.now();
    this.#granted -= grants;
    if (cost < 0) return this.#rule.take(-cost, now);
    this.#rule.giveBack(cost, Math.min(takenAt, now), now, used);
    this.#serve();
  }

  /** Throws for bad options, and the signal's reason if it is aborted already. */
  #admits(options: RateLimiterTakeOptions): boolean {
    checkWait(options);
    return this.#tryTake(options.cost);
  }

  #tryTake(cost = 1): boolean {
    const now = this.#clock.now();
    if (this.#turnAt(cost, now) > now || this.waiting > 0) return false;
    this.#take(cost, now);
    return true;
  }

  /** When it is the turn of who comes now. */
  #turnAt(cost: number, now: number): number {
    checkCost(cost, this.#rule.maxCost);
    return this.#allowedAt(cost, now, this.#queued);
  }

  #allowedAt(cost: number, now: number, ahead: number): number {
    return Math.max(this.#pausedUntil, this.#rule.turnAt(cost, Math.max(this.#pausedUntil, now), ahead));
  }

  #take(cost: number, now: number): void {
    this.#rule.take(cost, now);
    this.#granted += 1;
  }

  #wait(options: WaitOptions, cost = 1, place?: Place): Promise<void> {
    this.#waits.refuseHaste(options);
    const waitMs = this.retryAfterMs(cost);
    const isFirst = this.waiting === 0;
    if (this.waiting >= this.#maxWaiting || waitMs > (options.timeoutMs ?? Infinity))
      throw this.#refuse(new RateLimitedError(waitMs));
    if (isFirst) this.#timer = this.#clock.setTimer(waitMs, this.#task); // foreign code first: it may throw
    try {
      const wait =
        place === undefined
          ? this.#waits.wait(options, this.#clock, cost)
          : this.#waits.join(place, undefined, this.#clock);
      this.#queued += cost;
      return wait;
    } catch (error) {
      if (isFirst) this.#timer?.cancel(); // its signal or timer failed
      throw error;
    }
  }

  #onLeave(cost: number): void {
    this.#queued -= cost;
    if (this.waiting > 0) queueMicrotask(() => this.#serve()); // the next may want less, or leave in this turn too
    else this.#end();
  }

  #end(): void {
    this.#timer?.cancel();
    this.onIdle();
  }

  /** Clock and rule are foreign code: if one throws, who waits hears of it, or would wait for a timer that isn't set (I3). */
  #serve(slackMs = 0): void {
    try {
      this.#timer?.cancel();
      this.#serveThose(slackMs);
    } catch (error) {
      this.#waits.rejectAll(error);
    }
  }

  #serveThose(slackMs: number): void {
    let slack = slackMs;
    for (let next = firstLive(this.#waits); next !== undefined; next = firstLive(this.#waits)) {
      const now = this.#clock.now();
      const waitMs = this.#allowedAt(next.brought, now, 0) - now;
      if (waitMs > 0) {
        this.#timer = this.#clock.setTimer(waitMs + slack, this.#task);
        return;
      }
      slack = 0;
      this.#take(next.brought, now); // first: it may throw, and who has left the line would never hear of it
      this.#queued -= next.brought;
      this.#waits.remove(next);
      if (next instanceof Place) next.grantAt(now);
      else next.grant();
    }
    this.#end();
  }

  #cancel(place: Place): boolean {
    const { brought, takenAt } = place;
    if (place.lane !== undefined) {
      this.#waits.remove(place);
      this.#onLeave(brought);
      return true;
    }
    if (takenAt === undefined) return false;
    place.takenAt = undefined;
    this.adjust(brought, takenAt, 0, 1);
    return true;
  }

  #settle(place: Place, used: number): boolean {
    checkInteger("used", used, { min: 0 });
    const { brought, takenAt } = place;
    if (takenAt === undefined) return false;
    place.takenAt = undefined;
    this.adjust(brought - used, takenAt, used, 0);
    return true;
  }

  #refuse<E extends Error | undefined>(error: E): E {
    this.#rejected += 1;
    notice?.("rejected", this, error);
    return error;
  }
}

class Place extends Wait<void, number> {
  /** When it was granted; undefined before that, and once it has been given back or settled. */
  takenAt: number | undefined = undefined;

  grantAt(now: number): void {
    this.takenAt = now;
    this.grant();
  }
}

asPlainPromise(Place);

/**
 * Timers of a clock that isn't ours may fire a little early (https://github.com/nodejs/node/issues/26578). Whoever was
 * woken so waits for the rest and this much more, or it would be woken early again and again.
 */
const EARLY_MS = 1;
