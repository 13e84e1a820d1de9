/** The idle resources of a pool: the warmest goes first, and what has lain too long is swept away. */
import type { Clock, Timer, TimerTask } from "../clock/clock.ts";
import type { PoolEntry } from "./pool-lease.ts";

export class Shelf<R> implements TimerTask {
  // I1  in the order they came, the warmest last
  // I2  a timer is set, in the background, for as soon as one of them may have to go, unless the clock sets none
  readonly #idle: PoolEntry<R>[] = [];
  readonly #idleMs: number;
  readonly #clock: Clock;
  readonly #sweep: () => void;
  #timer: Timer | undefined;
  #sweepAt = Infinity;
  #latest: number;

  constructor(idleMs: number, clock: Clock, sweep: () => void) {
    this.#idleMs = idleMs;
    this.#clock = clock;
    this.#latest = clock.now();
    this.#sweep = sweep;
  }

  get size(): number {
    return this.#idle.length;
  }

  /** What the clock throws is an unhandled rejection, and the time that of before: else who waits would wait for ever. */
  now(): number {
    try {
      this.#latest = this.#clock.now();
    } catch (error) {
      void Promise.reject(error);
    }
    return this.#latest;
  }

  push(entry: PoolEntry<R>): void {
    this.#idle.push(entry);
    this.sweepBy(Math.min(entry.retireAt, entry.idleAt + this.#idleMs));
  }

  /** The warmest. */
  pop(): PoolEntry<R> | undefined {
    return this.#idle.pop();
  }

  /** Whether it was there. */
  remove(entry: PoolEntry<R>): boolean {
    const index = this.#idle.indexOf(entry);
    if (index !== -1) this.#idle.splice(index, 1);
    return index !== -1;
  }

  /** Takes out those that are too old, and the coldest of those that have lain too long, `spare` of them at most. */
  takeExpired(spare: number): PoolEntry<R>[] {
    const now = this.now();
    let left = spare;
    const isExpired = (entry: PoolEntry<R>): boolean => {
      const goes = entry.retireAt <= now || (left > 0 && entry.idleAt + this.#idleMs <= now);
      if (goes) left -= 1;
      return goes;
    };
    const expired = this.#idle.filter(isExpired);
    for (const entry of expired) this.remove(entry);
    for (const { retireAt, idleAt } of this.#idle) {
      const coldAt = idleAt + this.#idleMs;
      this.sweepBy(coldAt > now ? Math.min(retireAt, coldAt) : retireAt); // what has to stay is looked at when more come
    }
    return expired;
  }

  takeAll(): PoolEntry<R>[] {
    this.#timer?.cancel();
    return this.#idle.splice(0);
  }

  /** Calls `sweep` by then. */
  sweepBy(at: number): void {
    if (at >= this.#sweepAt) return;
    this.#timer?.cancel();
    try {
      this.#timer = this.#clock.setTimer(Math.max(0, at - this.now()), this, { background: true });
      this.#sweepAt = at;
    } catch (error) {
      this.#sweepAt = Infinity;
      void Promise.reject(error); // as of `now`; the next to come has it set again
    }
  }

  onTimer(): void {
    this.#sweepAt = Infinity;
    this.#sweep();
  }
}
