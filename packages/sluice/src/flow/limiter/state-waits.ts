/** Who waits for a limiter to have less to do. */
import type { Clock } from "../../clock/clock.ts";
import { PriorityWaitList } from "../../internal/priority-wait-list.ts";
import type { WaitOptions } from "../../policy.ts";

interface Load {
  readonly running: number;
  readonly waiting: number;
}

export class StateWaits {
  // I1  nobody waits for what is so already, but for who is about to hear of an abort and those behind
  // I2  what is so when more wait comes first: the number is the priority
  readonly #clock: Clock;
  readonly #load: Load;
  readonly #waits = new PriorityWaitList<void, number>({ onLeave: () => this.tell() });

  constructor(clock: Clock, load: Load) {
    this.#clock = clock;
    this.#load = load;
  }

  /** Until fewer than `count` wait; for 0, until nothing runs either. */
  wait(count: number, options: WaitOptions): Promise<void> {
    if (this.#isBelow(count)) return Promise.resolve();
    this.#waits.refuseHaste(options);
    return this.#waits.wait(options, this.#clock, count, count);
  }

  /** After each change. */
  tell(): void {
    for (let next = this.#waits.first; next !== undefined; next = this.#waits.first) {
      if (next.isDoomed || !this.#isBelow(next.brought)) return;
      this.#waits.shift()?.grant();
    }
  }

  #isBelow(count: number): boolean {
    const { running, waiting } = this.#load;
    return count === 0 ? running + waiting === 0 : waiting < count;
  }
}
