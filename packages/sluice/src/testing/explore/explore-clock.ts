/** A clock whose time passes only when the schedule says so: to the next timer, at any moment between two steps. */
import type { Clock, Timer, TimerTask } from "../../clock/clock.ts";
import { TrackedWork } from "../tracked-work.ts";

export class ExploreClock implements Clock {
  // I1  timers due at one instant fire in one turn, in the order they were set; what they set waits for a later turn
  #now = 0;
  readonly #entries = new Set<Entry>();
  readonly #work = new TrackedWork();

  /** When the next timer is due; undefined if none will ever be. */
  get nextAt(): number | undefined {
    let next = Infinity;
    for (const { dueAt } of this.#entries) next = Math.min(next, dueAt);
    return next === Infinity ? undefined : next;
  }

  now(): number {
    return this.#now;
  }

  wallNow(): number {
    return this.#now;
  }

  setTimer(delayMs: number, task: TimerTask): Timer {
    const entry = { dueAt: this.#now + (delayMs > 0 ? delayMs : 0), task };
    this.#entries.add(entry);
    return { cancel: () => this.#entries.delete(entry) };
  }

  track<T>(work: Promise<T>): Promise<T> {
    return this.#work.track(work);
  }

  /** Until all that can go on without time has done so. */
  settle(): Promise<void> {
    return this.#work.settle();
  }

  pass(): void {
    this.#now = this.nextAt ?? this.#now;
    for (const entry of [...this.#entries].filter(({ dueAt }) => dueAt === this.#now))
      if (this.#entries.delete(entry)) entry.task.onTimer(); // else one before it has cancelled it
  }
}

interface Entry {
  readonly dueAt: number;
  readonly task: TimerTask;
}
