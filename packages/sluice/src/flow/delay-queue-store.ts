import type { Clock, Timer, TimerTask } from "../clock/clock.ts";
import { checkMs, checkNumber } from "../internal/check.ts";
import { Heap, type HeapNode } from "../internal/heap.ts";
import type { DelayItemOptions } from "./delay-queue.ts";
import type { QueueStore } from "./queue-store.ts";

/** A heap by the instants at which items are due, and one timer at most: for the first, while somebody waits. */
export class DelayStore<T> implements QueueStore<T, DelayItemOptions, Entry<T>>, TimerTask {
  // I1  there is a timer exactly while #armedFor is in and first, and somebody waits
  // I2  if the clock throws, nobody waits on: what it was asked for goes on
  // I3  once there is an #index, it has the entries that are in, by their items
  /** An item is due that wasn't, and somebody waits for it. */
  onReady: () => void = () => {};
  /** Those who wait are to hear of an error of the clock's. */
  onFault: (error: unknown) => void = () => {};
  readonly #heap = new Heap<Entry<T>>(isBefore);
  readonly #clock: Clock;
  #added = 0;
  #isAwaited = false;
  /** From the first `remove` on: who never removes doesn't pay for it. */
  #index: Map<T, Set<Entry<T>>> | undefined;
  #isFaulty = false;
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
    if (this.#index !== undefined) enterInto(this.#index, entry);
    if (this.#isAwaited) this.#guarded(() => (this.isReady ? this.onReady() : this.#arm()));
  }

  peek(): T {
    return (this.#heap.peek() as Entry<T>).item;
  }

  shift(): T {
    const first = this.#heap.peek() as Entry<T>;
    this.#take(first);
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
    for (const entry of this.#indexed().get(item) ?? [])
      if (Object.is(entry.item, item) && (found === undefined || isBefore(entry, found))) found = entry; // 0 is not -0
    if (found !== undefined) this.#take(found);
    return found !== undefined;
  }

  /** What the clock throws is for the first who waits, and else for all who do. */
  expect(isAwaited: boolean): void {
    const isFirst = isAwaited && !this.#isAwaited;
    this.#isAwaited = isAwaited;
    if (isFirst && !this.#isFaulty) this.#arm();
    else this.#guarded(() => this.#arm());
  }

  onTimer(): void {
    this.#armedFor = undefined;
    this.#guarded(this.onReady);
  }

  #indexed(): Map<T, Set<Entry<T>>> {
    if (this.#index !== undefined) return this.#index;
    const index = (this.#index = new Map<T, Set<Entry<T>>>());
    this.#heap.find((entry) => enterInto(index, entry));
    return index;
  }

  #take(entry: Entry<T>): void {
    this.#heap.remove(entry);
    const same = this.#index?.get(entry.item);
    if (same?.delete(entry) === true && same.size === 0) this.#index?.delete(entry.item);
    if (entry === this.#armedFor) this.#guarded(() => this.#arm());
  }

  #guarded(work: () => void): void {
    if (this.#isFaulty) return; // those who hear of it leave one by one, and each leaving comes by here
    try {
      work();
    } catch (error) {
      this.#isFaulty = true;
      this.onFault(error);
      this.#isFaulty = false;
    }
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

function enterInto<T>(index: Map<T, Set<Entry<T>>>, entry: Entry<T>): false {
  const same = index.get(entry.item);
  if (same === undefined) index.set(entry.item, new Set([entry]));
  else same.add(entry);
  return false;
}

function isBefore(a: Entry<unknown>, b: Entry<unknown>): boolean {
  return a.dueAt === b.dueAt ? a.order < b.order : a.dueAt < b.dueAt;
}
