import type { Clock } from "../clock/clock.ts";
import { Ring } from "../internal/ring.ts";
import type { QueueStore } from "./queue-store.ts";

/**
 * First in, first out. Reading the clock is a third of what putting and taking an item costs, so that in a queue without
 * a name only one of `every` items is stamped, and what has waited for room, whose instant is known. The age is told by
 * the first stamp, so that it is never told too high.
 */
export class RingStore<T> implements QueueStore<T, object, T> {
  // I1  #stamps holds pairs, in order: the number of an item that is in, counted from 1, and when it was brought
  // I2  #nextStamp is the number of the first pair, or Infinity
  readonly #items = new Ring<T>();
  readonly #stamps = new Ring<number>();
  readonly #clock: Clock;
  readonly #mask: number;
  #added = 0;
  #removed = 0;
  #nextStamp = Infinity;

  /** `every` is a power of two. */
  constructor(clock: Clock, every: number) {
    this.#clock = clock;
    this.#mask = every - 1;
  }

  get size(): number {
    return this.#items.size;
  }

  get isReady(): boolean {
    return this.#items.size > 0;
  }

  get oldestAt(): number | undefined {
    if (this.size === 0) return undefined;
    if (this.#nextStamp === Infinity) this.#stamp(this.#clock.now()); // nobody has looked before
    return this.#stamps.second;
  }

  enter(item: T): T {
    return item;
  }

  itemOf(entry: T): T {
    return entry;
  }

  priorityOf(): number {
    return 0;
  }

  add(entry: T, broughtAt?: number): void {
    this.#items.push(entry);
    this.#added += 1;
    // The second one is where a backlog begins.
    if (broughtAt !== undefined || (this.#added & this.#mask) === 0 || this.size === 2)
      this.#stamp(broughtAt ?? this.#clock.now());
  }

  peek(): T {
    return this.#items.peek() as T;
  }

  shift(): T {
    this.#removed += 1;
    if (this.#removed === this.#nextStamp) this.#dropStamp();
    return this.#items.shift() as T;
  }

  evict(): { readonly item: T } | undefined {
    return this.size === 0 ? undefined : { item: this.shift() };
  }

  clear(): T[] {
    return Array.from({ length: this.size }, () => this.shift());
  }

  #stamp(at: number): void {
    if (this.#nextStamp === Infinity) this.#nextStamp = this.#added;
    this.#stamps.push(this.#added);
    this.#stamps.push(at);
  }

  #dropStamp(): void {
    this.#stamps.shift();
    this.#stamps.shift();
    this.#nextStamp = this.#stamps.peek() ?? Infinity;
  }
}
