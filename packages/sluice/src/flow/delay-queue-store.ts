import type { Clock, Timer, TimerTask } from "../clock/clock.ts";
import { checkMs, checkNumber } from "../internal/check.ts";
import { Heap, type HeapNode } from "../internal/heap.ts";
import type { DelayItemOptions } from "./delay-queue.ts";
import type { QueueStore } from "./queue-store.ts";

/** A heap by the instants at which items are due, and one timer at most: for the first, while somebody waits. */
export class DelayStore<T> implements QueueStore<T, DelayItemOptions, Entry<T>>, TimerTask {
  // I1  there is a timer exactly while #armedFor is in and first, and somebody waits
  /** An item is due that wasn't, and somebody waits for it. */
  onReady: () => void = () => {};
  readonly #heap = new Heap<Entry<T>>(isBefore);
  readonly #clock: Clock;
  #added = 0;
  #isAwaited = false;
  #armedFor: Entry<T> | undefined;
  #timer: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#heap.size;
  }

  get isReady(): boolean {
    const first = this.#heap.peek();
    return first !== undefined && first.dueAt <= this.#clock.now();
  }

  /** What isn't due is not late. */
  get oldestAt(): number | undefined {
    return this.#heap.peek()?.dueAt;
  }

  enter(item: T, { delayMs, dueAt }: DelayItemOptions = {}): Entry<T> {
    if (delayMs !== undefined && dueAt !== undefined) throw new TypeError("delayMs and dueAt must not both be given");
    const fromNow =
      dueAt === undefined
        ? checkMs("delayMs", delayMs ?? 0)
        : checkNumber("dueAt", dueAt, { min: 0 }) - this.#clock.wallNow();
    return { item, dueAt: this.#clock.now() + Math.max(0, fromNow), order: 0, slot: -1 };
  }

  itemOf(entry: Entry<T>): T {
    return entry.item;
  }

  priorityOf(): number {
    return 0;
  }

  add(entry: Entry<T>): void {
    entry.order = this.#added += 1;
    this.#heap.push(entry);
    if (this.#isAwaited && this.isReady) this.onReady();
    else this.#arm();
  }

  peek(): T {
    return (this.#heap.peek() as Entry<T>).item;
  }

  shift(): T {
    const first = this.#heap.peek() as Entry<T>;
    this.#heap.remove(first);
    if (first === this.#armedFor) this.#arm();
    return first.item;
  }

  evict(): { readonly item: T } | undefined {
    return this.size === 0 ? undefined : { item: this.shift() };
  }

  clear(): T[] {
    return Array.from({ length: this.size }, () => this.shift());
  }

  /** Of those that are the same, the one that is due first. */
  remove(item: T): boolean {
    let found: Entry<T> | undefined;
    this.#heap.find((entry) => {
      if (Object.is(entry.item, item) && (found === undefined || isBefore(entry, found))) found = entry;
      return false;
    });
    if (found === undefined) return false;
    this.#heap.remove(found);
    this.#arm();
    return true;
  }

  expect(isAwaited: boolean): void {
    this.#isAwaited = isAwaited;
    this.#arm();
  }

  onTimer(): void {
    this.#armedFor = undefined;
    this.onReady();
  }

  #arm(): void {
    const first = this.#isAwaited ? this.#heap.peek() : undefined;
    if (first === this.#armedFor) return;
    this.#timer?.cancel();
    this.#armedFor = this.#timer = undefined;
    if (first === undefined || first.dueAt === Infinity) return;
    this.#timer = this.#clock.setTimer(Math.max(0, first.dueAt - this.#clock.now()), this);
    this.#armedFor = first;
  }
}

interface Entry<T> extends HeapNode {
  readonly item: T;
  /** By the monotonic clock. */
  readonly dueAt: number;
  /** Among those due at one instant: of coming. */
  order: number;
}

function isBefore(a: Entry<unknown>, b: Entry<unknown>): boolean {
  return a.dueAt === b.dueAt ? a.order < b.order : a.dueAt < b.dueAt;
}
