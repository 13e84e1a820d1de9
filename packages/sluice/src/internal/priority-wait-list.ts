/** A line in which a higher priority goes first, if somebody has one; a long wait counts as a higher priority. */
import type { Clock } from "../clock/clock.ts";
import { coarseNow } from "./coarse-now.ts";
import { Lane } from "./lane.ts";
import type { Wait } from "./wait.ts";
import { WaitList, type WaitListOptions } from "./wait-list.ts";

export interface PriorityWaitListOptions<B> extends WaitListOptions<B> {
  /** A wait gains one step of priority each time it has waited for this long; `Infinity` for none. @default Infinity */
  readonly agingMs?: number | undefined;
}

/** Joining and leaving take O(log priorities) comparisons, and a move within an array of one place for each priority. */
export class PriorityWaitList<T, B = void> extends WaitList<T, B> {
  // I3  while all have priority 0 there is no #order; after that and until the line is empty it has the lanes that
  //     aren't, in the order of their first waits' turns
  readonly #agingMs: number;
  readonly #lanes = new Map<number, Lane<T, B>>([[0, this.plain]]);
  #order: Lane<T, B>[] | undefined;

  constructor({ agingMs = Infinity, ...options }: PriorityWaitListOptions<B>) {
    super(options);
    this.#agingMs = agingMs;
  }

  override get first(): Wait<T, B> | undefined {
    return this.#order === undefined ? this.plain.first : this.#order[0]?.first;
  }

  /** The oldest of those whose turn comes last. */
  get leastUrgent(): Wait<T, B> | undefined {
    return this.#order === undefined ? this.plain.first : this.#order.at(-1)?.first;
  }

  /** Whether it would be the turn of who joins now. */
  wouldBeFirst(priority: number, clock: Clock): boolean {
    const { first } = this;
    if (first?.lane === undefined) return true;
    const other = first.lane.priority;
    if (priority <= other) return false; // the usual case, which needs no clock
    return this.#compare(priority, Math.floor(coarseNow(clock)), other, first.joinedAt) < 0;
  }

  override inOrder(): Wait<T, B>[] {
    if (this.#order === undefined) return super.inOrder();
    // Who was moved to the end of its priority goes after those there, though it may have joined before them.
    const entries = this.#order.flatMap((lane) => {
      let at = -Infinity;
      return [...lane].map((wait) => ({ wait, priority: lane.priority, at: (at = Math.max(at, wait.joinedAt)) }));
    });
    return entries.toSorted((a, b) => this.#compare(a.priority, a.at, b.priority, b.at)).map(({ wait }) => wait);
  }

  /** To the end of those with this priority. Does nothing to a wait that has left. */
  move(wait: Wait<T, B>, priority: number): void {
    if (wait.lane === undefined || wait.lane.priority === priority) return;
    this.leave(wait, wait.lane);
    this.append(wait, priority);
  }

  protected override append(wait: Wait<T, B>, priority = 0): void {
    if (this.#order === undefined) {
      if (priority === 0) return this.plain.append(wait);
      this.#order = this.plain.first === undefined ? [] : [this.plain];
    }
    let lane = this.#lanes.get(priority);
    if (lane === undefined) this.#lanes.set(priority, (lane = new Lane(this, priority)));
    lane.append(wait);
    if (lane.first === wait) this.#place(lane, this.#order);
  }

  protected override leave(wait: Wait<T, B>, lane: Lane<T, B>): void {
    const wasFirst = lane.first === wait;
    lane.remove(wait);
    const order = this.#order;
    if (order === undefined || !wasFirst) return;
    order.splice(order.indexOf(lane), 1);
    if (lane.first !== undefined) return this.#place(lane, order);
    if (lane !== this.plain) this.#lanes.delete(lane.priority);
    if (order.length === 0) this.#order = undefined;
  }

  #place(lane: Lane<T, B>, order: Lane<T, B>[]): void {
    let [from, to] = [0, order.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      if (this.#isBefore(lane, order[middle])) to = middle;
      else from = middle + 1;
    }
    order.splice(from, 0, lane);
  }

  /** All age at one pace, so that the order of two never changes while they wait. */
  #isBefore(a: Lane<T, B>, b: Lane<T, B> | undefined): boolean {
    return this.#compare(a.priority, a.first?.joinedAt ?? 0, b?.priority ?? 0, b?.first?.joinedAt ?? 0) < 0;
  }

  /** Below 0 if the first goes before the other. */
  #compare(priority: number, joinedAt: number, other: number, otherJoinedAt: number): number {
    if (this.#agingMs === Infinity) return other - priority;
    return joinedAt - otherJoinedAt - (priority - other) * this.#agingMs || other - priority;
  }
}
