/** The waits of one priority, first come, first served. */
import type { Wait } from "./wait.ts";
import type { WaitList } from "./wait-list.ts";

export class Lane<T, B> implements Iterable<Wait<T, B>> {
  // I1  doubly linked from `first` to `last`; `lane` of a member points here
  readonly list: WaitList<T, B>;
  readonly priority: number;
  first: Wait<T, B> | undefined;
  #last: Wait<T, B> | undefined;

  constructor(list: WaitList<T, B>, priority: number) {
    this.list = list;
    this.priority = priority;
  }

  append(wait: Wait<T, B>): void {
    wait.ahead = this.#last;
    if (this.#last === undefined) this.first = wait;
    else this.#last.behind = wait;
    this.#last = wait;
    wait.lane = this;
  }

  remove(wait: Wait<T, B>): void {
    const { ahead, behind } = wait;
    if (ahead === undefined) this.first = behind;
    else ahead.behind = behind;
    if (behind === undefined) this.#last = ahead;
    else behind.ahead = ahead;
    wait.ahead = wait.behind = wait.lane = undefined;
  }

  *[Symbol.iterator](): Generator<Wait<T, B>> {
    for (let wait = this.first; wait !== undefined; wait = wait.behind) yield wait;
  }
}
