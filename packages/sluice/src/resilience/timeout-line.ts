/**
 * Calls under one limit. They reach it in the order in which they began, so that one timer, set for the oldest, serves
 * them all: to set and clear one for each is most of what a call would cost.
 */
import type { Clock, Timer, TimerTask } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { Watcher } from "../internal/abort.ts";

/** A call in a line, which hears of its caller's abort as well. */
export abstract class LimitedCall extends Watcher {
  // Only `TimeoutLine` touches these.
  line: TimeoutLine | undefined;
  dueAt = 0;
  sooner: LimitedCall | undefined;
  later: LimitedCall | undefined;

  /** Called at the limit; the call has left the line. */
  abstract onLimit(): void;
}

export class TimeoutLine implements TimerTask {
  // I1  the list is doubly linked, soonest first; `line` of a member points here
  // I2  while there is a member there is a timer, for the soonest or for one before, unless the clock has thrown since the
  //     last one joined; when the last has left there is none, after #linger turns of the microtask queue at most
  readonly #timeoutMs: number;
  readonly #clock: Clock;
  readonly #linger: number;
  #soonest: LimitedCall | undefined;
  #latest: LimitedCall | undefined;
  #timer: Timer | undefined;
  #timerDueAt = 0;
  #turnsLeft = 0;

  constructor(timeoutMs: number, clock: Clock) {
    this.#timeoutMs = timeoutMs;
    this.#clock = clock;
    this.#linger = clock === systemClock ? LINGER_TURNS : 0;
  }

  /** Throws what the clock throws. */
  join(call: LimitedCall): void {
    const now = this.#clock.now();
    call.dueAt = now + this.#timeoutMs;
    if (this.#timer === undefined) this.#setTimer(this.#soonest?.dueAt ?? call.dueAt, now); // first: it may throw
    call.line = this;
    call.sooner = this.#latest;
    if (this.#latest === undefined) this.#soonest = call;
    else this.#latest.later = call;
    this.#latest = call;
  }

  /** Does nothing to a call that has left. */
  leave(call: LimitedCall): void {
    if (call.line === undefined) return;
    const { sooner, later } = call;
    if (sooner === undefined) this.#soonest = later;
    else sooner.later = later;
    if (later === undefined) this.#latest = sooner;
    else later.sooner = sooner;
    call.line = call.sooner = call.later = undefined;
    if (this.#soonest === undefined && this.#turnsLeft === 0) this.#rest(this.#linger);
  }

  onTimer(): void {
    const fired = this.#timer;
    queueMicrotask(() => this.#expire(fired)); // an abort of the same turn wins
  }

  #expire(fired: Timer | undefined): void {
    if (this.#timer !== fired) return; // nobody was left; who came since has another
    let now = this.#timerDueAt;
    try {
      now = Math.max(this.#clock.now(), now); // it may round, but who the timer was set for is due
      for (let call = this.#soonest; call !== undefined && call.dueAt <= now; call = this.#soonest) {
        this.leave(call);
        call.onLimit();
      }
    } finally {
      this.#timer?.cancel(); // what the calls have begun may have set another
      this.#timer = undefined; // whatever the clock has thrown: who comes next sets a timer for all
    }
    if (this.#soonest !== undefined) this.#setTimer(this.#soonest.dueAt, now);
  }

  #setTimer(dueAt: number, now: number): void {
    this.#timer = this.#clock.setTimer(Math.max(0, dueAt - now), this);
    this.#timerDueAt = dueAt;
  }

  /** Nobody is left: the timer goes after so many turns in which nobody comes. */
  #rest(turns: number): void {
    this.#turnsLeft = turns;
    if (turns > 0) void settled.then(this.#onTurn);
    else this.#close();
  }

  readonly #onTurn = (): void => {
    this.#rest(this.#soonest === undefined ? this.#turnsLeft - 1 : 0);
  };

  #close(): void {
    if (this.#soonest !== undefined) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}

/** A native timer is dear: a caller who goes on with the next call, through an async function or two, keeps it. */
const LINGER_TURNS = 4;

const settled = Promise.resolve();
