import type { Clock } from "../clock/clock.ts";
import { checkPriority } from "../internal/check.ts";
import { Heap, type HeapNode } from "../internal/heap.ts";
import type { PriorityItemOptions } from "./priority-queue.ts";
import type { QueueStore } from "./queue-store.ts";

/** A list for each priority, and a heap of the lists that aren't empty, by their first items. */
export class PriorityStore<T> implements QueueStore<T, PriorityItemOptions, Entry<T>> {
  // I1  #lanes and #heap hold the same lanes, and none is empty
  // I2  within a lane: in the order of coming
  readonly #lanes = new Map<number, Lane<T>>();
  readonly #heap = new Heap<Lane<T>>((a, b) => this.#isBefore(a, b));
  readonly #clock: Clock;
  readonly #agingMs: number;
  readonly #priorityOf: ((item: T) => number) | undefined;
  #size = 0;

  constructor(clock: Clock, agingMs: number, priorityOf: ((item: T) => number) | undefined) {
    this.#clock = clock;
    this.#agingMs = agingMs;
    this.#priorityOf = priorityOf;
  }

  get size(): number {
    return this.#size;
  }

  get isReady(): boolean {
    return this.#size > 0;
  }

  get oldestAt(): number | undefined {
    let oldest: number | undefined;
    for (const { first } of this.#lanes.values()) if (!(first.at >= (oldest ?? Infinity))) oldest = first.at;
    return oldest;
  }

  enter(item: T, options?: PriorityItemOptions): Entry<T> {
    const priority = checkPriority(options?.priority ?? this.#priorityOf?.(item) ?? 0);
    return { item, priority, at: 0, behind: undefined };
  }

  itemOf(entry: Entry<T>): T {
    return entry.item;
  }

  priorityOf(entry: Entry<T>): number {
    return entry.priority;
  }

  /** In whole milliseconds, as of who waited for room. */
  add(entry: Entry<T>, broughtAt?: number): void {
    entry.at = Math.floor(broughtAt ?? this.#clock.now());
    this.#size += 1;
    const lane = this.#lanes.get(entry.priority);
    if (lane !== undefined) {
      lane.last.behind = entry;
      lane.last = entry;
      return;
    }
    const { priority } = entry;
    const added: Lane<T> = { priority, first: entry, last: entry, slot: -1 };
    this.#lanes.set(priority, added);
    this.#heap.push(added);
  }

  peek(): T {
    return this.#next().first.item;
  }

  shift(): T {
    return this.#shiftFrom(this.#next());
  }

  evict({ priority }: Entry<T>): { readonly item: T } | undefined {
    let lowest = Infinity;
    for (const each of this.#lanes.keys()) lowest = Math.min(lowest, each);
    const lane = this.#lanes.get(lowest);
    return lane === undefined || priority < lowest ? undefined : { item: this.#shiftFrom(lane) };
  }

  clear(): T[] {
    return Array.from({ length: this.#size }, () => this.shift());
  }

  /** The oldest of those that are the same. */
  remove(item: T): boolean {
    let [found, before]: [Entry<T>?, Entry<T>?] = [];
    for (const { first } of this.#lanes.values()) {
      for (let [entry, ahead]: [Entry<T>?, Entry<T>?] = [first]; entry !== undefined; entry = entry.behind) {
        if (Object.is(entry.item, item) && (found === undefined || entry.at < found.at))
          [found, before] = [entry, ahead];
        ahead = entry;
      }
    }
    const lane = found && this.#lanes.get(found.priority);
    if (found === undefined || lane === undefined) return false;
    if (before === undefined) this.#shiftFrom(lane);
    else {
      before.behind = found.behind;
      if (lane.last === found) lane.last = before;
      this.#size -= 1;
    }
    return true;
  }

  #next(): Lane<T> {
    return this.#heap.peek() as Lane<T>;
  }

  #shiftFrom(lane: Lane<T>): T {
    const { item, behind } = lane.first;
    this.#size -= 1;
    this.#heap.remove(lane);
    if (behind === undefined) this.#lanes.delete(lane.priority);
    else {
      lane.first = behind;
      this.#heap.push(lane);
    }
    return item;
  }

  /** All age at one pace, so that the order of two never changes while they are in. */
  #isBefore(a: Lane<T>, b: Lane<T>): boolean {
    if (this.#agingMs === Infinity) return a.priority > b.priority;
    const gainMs = (a.priority - b.priority) * this.#agingMs;
    const laterMs = a.first.at - b.first.at;
    return gainMs === laterMs ? a.priority > b.priority : gainMs > laterMs;
  }
}

interface Entry<T> {
  readonly item: T;
  readonly priority: number;
  /** When it was brought. */
  at: number;
  behind: Entry<T> | undefined;
}

interface Lane<T> extends HeapNode {
  readonly priority: number;
  first: Entry<T>;
  last: Entry<T>;
}
