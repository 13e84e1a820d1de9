/**
 * Calls under one limit. They reach it in the order in which they began, so that one timer, set for the oldest, serves
 * them all: to set and clear one for each is most of what a call would cost.
 */
import type { Clock, Timer, TimerTask } from "../clock/clock.ts";
import { systemClock } from "../clock/system.ts";
import { Watcher } from "../internal/abort.ts";
import { LINGER_TURNS, Lingering } from "../internal/lingering.ts";

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

export class TimeoutLine extends Lingering implements TimerTask {
  // I1  the list is doubly linked, soonest first; `line` of a member points here
  // I2  while there is a member there is a timer, for the soonest or for one before; when the last has left there is none,
  //     after #linger turns of the microtask queue at most
  readonly #timeoutMs: number;
  readonly #clock: Clock;
  readonly #linger: number;
  #soonest: LimitedCall | undefined;
  #latest: LimitedCall | undefined;
  #timer: Timer | undefined;
  #timerDueAt = 0;

  constructor(timeoutMs: number, clock: Clock) {
    super();
    this.#timeoutMs = timeoutMs;
    this.#clock = clock;
    this.#linger = clock === systemClock ? LINGER_TURNS : 0;
  }

  override get isIdle(): boolean {
    return this.#soonest === undefined;
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
    if (this.#soonest === undefined) this.rest(this.#linger);
  }

  onTimer(): void {
    const fired = this.#timer;
    queueMicrotask(() => this.#expire(fired)); // an abort of the same turn wins
  }

  #expire(fired: Timer | undefined): void {
    if (this.#timer !== fired) return; // nobody was left; who came since has another
    try {
      const now = Math.max(this.#clock.now(), this.#timerDueAt); // it may round, but who the timer was set for is due
      for (let call = this.#soonest; call !== undefined && call.dueAt <= now; call = this.#soonest) {
        this.leave(call);
        call.onLimit();
      }
      this.#clearTimer(); // what the calls have begun may have set another
      if (this.#soonest !== undefined) this.#setTimer(this.#soonest.dueAt, now);
    } catch (error) {
      this.#timer = undefined;
      this.#giveUp(error);
      throw error;
    }
  }

  /** The clock has thrown, and nobody in line would ever hear of a limit, unless who comes meanwhile gets a timer. */
  #giveUp(error: unknown): void {
    for (let call = this.#soonest; call !== undefined && this.#timer === undefined; call = this.#soonest) {
      this.leave(call);
      call.onAbort(error);
    }
  }

  #setTimer(dueAt: number, now: number): void {
    this.#timer = this.#clock.setTimer(Math.max(0, dueAt - now), this);
    this.#timerDueAt = dueAt;
  }

  override close(): void {
    this.#clearTimer();
  }

  #clearTimer(): void {
    const timer = this.#timer;
    this.#timer = undefined; // first: the clock may throw
    timer?.cancel();
  }
}
