/** What `RateLimiter` keeps for one key: how full the bucket is and, while it is empty, who waits for it. */
import type { Clock, Timer, TimerTask } from "../clock/clock.ts";
import { RateLimitedError } from "../errors.ts";
import { WaitList } from "../internal/wait-list.ts";
import type { WaitOptions } from "../policy.ts";
import { gcra, type GcraLimit } from "./gcra.ts";

export interface BucketRules extends GcraLimit {
  readonly maxWaiting: number;
  readonly clock: Clock;
  readonly counts: Counts;
}

export interface Counts {
  // As in `RateLimiterStats`; what those in `lines` add is in their waits until they end.
  granted: number;
  rejected: number;
  timedOut: number;
  aborted: number;
  readonly lines: Set<Line>;
}

export class Bucket {
  // I1  tokens go out only when `gcra` allows it by the clock as it is then, whatever woke us
  // I2  tokens go out in arrival order: while there is a line, no newcomer takes one
  // I3  there is a line exactly while somebody waits
  // I4  without a line and with `tat` in the past it is as good as new, and may be forgotten
  readonly key: string;
  readonly rules: BucketRules;
  tat: number = -Infinity;
  line: Line | undefined;

  constructor(key: string, rules: BucketRules) {
    this.key = key;
    this.rules = rules;
  }

  isIdle(now: number): boolean {
    return this.line === undefined && this.tat <= now;
  }

  tryTake(now: number, cost: number): boolean {
    return this.line === undefined && this.take(now, cost) === 0;
  }

  /** 0 if it took them, else when to try again. Whose turn it is, the caller knows. */
  take(now: number, cost: number): number {
    const { allowed, tat, retryAfterMs } = gcra(this.tat, now, this.rules, cost);
    if (allowed) this.rules.counts.granted += 1;
    this.tat = tat;
    return retryAfterMs;
  }

  /** What was granted but not used. Later grants were made as if it had been, so this is never too much. */
  giveBack(cost: number): void {
    this.tat -= cost * this.rules.intervalMs;
    this.rules.counts.granted -= 1;
    this.line?.serveAnew();
  }

  /** When `cost` more tokens will be there, if all that wait stay. */
  retryAfterMs(cost: number): number {
    const now = this.rules.clock.now();
    const queuedMs = (this.line?.queued ?? 0) * this.rules.intervalMs;
    return gcra(Math.max(this.tat, now) + queuedMs, now, this.rules, cost).retryAfterMs;
  }

  wait(options: WaitOptions, cost: number): Promise<void> {
    const { maxWaiting, counts } = this.rules;
    if ((this.line?.waits.size ?? 0) >= maxWaiting) {
      counts.rejected += 1;
      throw new RateLimitedError(this.retryAfterMs(cost));
    }
    return (this.line ?? new Line(this)).join(options, cost);
  }
}

/** Those who wait for one bucket. */
export class Line implements TimerTask {
  readonly waits: WaitList<void, number> = new WaitList<void, number>({ onLeave: (cost) => this.#onLeave(cost) });
  /** Tokens that all of them together wait for. */
  queued = 0;
  readonly #bucket: Bucket;
  #timer: Timer | undefined;

  constructor(bucket: Bucket) {
    this.#bucket = bucket;
  }

  join(options: WaitOptions, cost: number): Promise<void> {
    const { clock, counts } = this.#bucket.rules;
    const { size } = this.waits;
    if (size === 0) this.#arm(this.#bucket.retryAfterMs(cost)); // foreign code first: it may throw
    try {
      const granted = this.waits.wait(options, clock, cost);
      this.queued += cost;
      this.#bucket.line = this;
      counts.lines.add(this);
      return granted;
    } catch (error) {
      if (size === 0) this.#timer?.cancel(); // its signal or timer failed
      throw error;
    }
  }

  onTimer(): void {
    this.#serve(EARLY_MS);
  }

  serveAnew(): void {
    if (this.#bucket.line !== this) return;
    this.#timer?.cancel();
    this.#serve(0);
  }

  #onLeave(cost: number): void {
    this.queued -= cost;
    if (this.waits.size > 0) queueMicrotask(() => this.serveAnew()); // the next may want less, or leave in this turn too
    else this.#end();
  }

  #serve(slackMs: number): void {
    const now = this.#bucket.rules.clock.now();
    let slack = slackMs;
    for (let next = this.waits.first; next !== undefined; next = this.waits.first) {
      const retryAfterMs = this.#bucket.take(now, next.brought);
      if (retryAfterMs > 0) {
        this.#arm(retryAfterMs + slack);
        return;
      }
      slack = 0;
      this.queued -= next.brought;
      this.waits.shift()?.grant();
    }
    this.#end();
  }

  #arm(delayMs: number): void {
    this.#timer = this.#bucket.rules.clock.setTimer(delayMs, this);
  }

  #end(): void {
    this.#timer?.cancel();
    this.#bucket.line = undefined;
    const { counts } = this.#bucket.rules;
    counts.timedOut += this.waits.timedOut;
    counts.aborted += this.waits.aborted;
    counts.lines.delete(this);
  }
}

/**
 * Timers of a clock that isn't ours may fire a little early (https://github.com/nodejs/node/issues/26578). Whoever was
 * woken so waits for the rest and this much more, or it would be woken early again and again.
 */
const EARLY_MS = 1;
