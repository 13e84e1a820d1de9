/**
 * Timers as a pure data structure: a hierarchical timing wheel (Varghese and Lauck, 1987) of whole milliseconds in typed
 * arrays. Insert and cancel are O(1) at 20 B a timer beside the reference to its task; `systemClock` runs on it.
 */
import type { TimerTask } from "./clock.ts";

/** Each level has 64 buckets, each as wide as the whole level below: five levels see 2^30 ms, 12 days, ahead. */
const LEVEL_BITS = 6;
const NEAR_MS = 2 ** 30;
/** One bucket for all that lies beyond. */
const FAR = 5 << LEVEL_BITS;
const BUCKETS = FAR + 1;
const PAGE_BITS = 10;
const PAGE_SLOTS = 1 << PAGE_BITS;
const IN_PAGE = PAGE_SLOTS - 1;
/** A handle is `generation * MAX_SLOTS + slot`. A slot whose generations are used up is never used again. */
const MAX_SLOTS = 2 ** 25;
const MAX_GENERATIONS = 2 ** 28;

/** Slots come in pages, since arrays that grow are copied, and stand half empty after that. */
class Page {
  readonly next = new Int32Array(PAGE_SLOTS);
  readonly previous = new Int32Array(PAGE_SLOTS);
  readonly generation = new Int32Array(PAGE_SLOTS).fill(-1);
  readonly dueAt = new Float64Array(PAGE_SLOTS);
  readonly tasks: (TimerTask | undefined)[] = Array.from({ length: PAGE_SLOTS });

  /** No task is in, and its generations are far from used up. */
  get isIdle(): boolean {
    return (
      this.tasks.every((task) => task === undefined) && this.generation.every((each) => each < MAX_GENERATIONS / 2)
    );
  }
}

export class TimerQueue {
  // I1  bucket b is a ring through `next` and `previous` that starts at slot b; the slots of timers come after BUCKETS
  // I2  a timer due in the same 64 ms as #at is on level 0, else in the same 4,096 ms on level 1, and so on; so all in
  //     one bucket come before all in the next, those due at one instant share a bucket, and a ring keeps their order
  // I3  #occupied has a bit for each bucket that isn't empty; no timer in a bucket is due before its #earliest
  // I4  the handles of a slot that are out of use are those below its generation
  #at = 0;
  #farAt = NEAR_MS;
  #size = 0;
  readonly #occupied = new Int32Array((BUCKETS >> 5) + 1);
  readonly #earliest = new Float64Array(BUCKETS).fill(Infinity);
  readonly #rings = new Page();
  readonly #pages: Page[] = [this.#rings];
  /** The free slots before #end and #limit, linked by `next`; 0 ends the list. */
  #free = 0;
  #end = BUCKETS;
  #limit = MAX_SLOTS;
  #firstGeneration = 0;
  #untilTidy = PAGE_SLOTS;
  #lowMark = -1;

  constructor() {
    for (let bucket = 0; bucket < BUCKETS; bucket += 1) this.#clear(bucket);
  }

  get size(): number {
    return this.#size;
  }

  /** `dueAt` is rounded up to a whole millisecond; what is past counts as due now. Returns a handle for `cancel`. */
  insert(dueAt: number, task: TimerTask): number {
    if (!(dueAt <= Infinity)) throw new RangeError(`dueAt must be a number, got ${dueAt}`);
    const slot = this.#free === 0 ? this.#newSlot() : this.#free;
    const page = this.#page(slot);
    const index = slot & IN_PAGE;
    this.#free = page.next[index] as number;
    page.dueAt[index] = Math.max(Math.ceil(dueAt), this.#at);
    page.tasks[index] = task;
    this.#size += 1;
    this.#link(slot, page, index);
    return (page.generation[index] as number) * MAX_SLOTS + slot;
  }

  /** Whether it was still to come. */
  cancel(handle: number): boolean {
    const slot = handle & (MAX_SLOTS - 1);
    const page = this.#pages[slot >> PAGE_BITS];
    if (page === undefined) return false;
    const index = slot & IN_PAGE;
    if ((page.generation[index] as number) * MAX_SLOTS + slot !== handle) return false;
    this.#take(slot, page, index);
    return true;
  }

  /** When to look again: not later than the first is due, and earlier only where one was cancelled. `Infinity`: never. */
  nextDueAt(): number {
    const bucket = this.#firstBucket();
    return bucket === -1 ? Infinity : (this.#earliest[bucket] as number);
  }

  /** Takes the first timer that is due by `now`, of several due at once the first that was inserted. */
  popDue(now: number): TimerTask | undefined {
    for (;;) {
      const bucket = this.#firstBucket();
      if (bucket === -1 || !((this.#earliest[bucket] as number) <= now)) return undefined;
      this.#at = this.#earliest[bucket] as number;
      if (bucket >> LEVEL_BITS > 0) {
        this.#spread(bucket);
        continue;
      }
      const slot = this.#rings.next[bucket] as number;
      return this.#take(slot, this.#page(slot), slot & IN_PAGE);
    }
  }

  #page(slot: number): Page {
    return this.#pages[slot >> PAGE_BITS] as Page;
  }

  #link(slot: number, page: Page, index: number): void {
    const dueAt = page.dueAt[index] as number;
    let bucket = FAR;
    if (dueAt < this.#farAt) {
      const level = ((31 - Math.clz32(dueAt ^ this.#at)) / LEVEL_BITS) | 0; // by the highest bit that differs
      bucket = (level << LEVEL_BITS) | ((dueAt >>> (level * LEVEL_BITS)) & 63);
    }
    const ring = this.#rings;
    const last = ring.previous[bucket] as number;
    this.#page(last).next[last & IN_PAGE] = ring.previous[bucket] = slot;
    page.previous[index] = last;
    page.next[index] = bucket;
    if (dueAt < (this.#earliest[bucket] as number)) this.#earliest[bucket] = dueAt;
    (this.#occupied[bucket >> 5] as number) |= 1 << (bucket & 31);
  }

  #take(slot: number, page: Page, index: number): TimerTask | undefined {
    const task = page.tasks[index];
    const before = page.previous[index] as number;
    const after = page.next[index] as number;
    if (before === after) this.#clear(before); // only a ring of the bucket and this one has one neighbour on both sides
    else {
      this.#page(before).next[before & IN_PAGE] = after;
      this.#page(after).previous[after & IN_PAGE] = before;
    }
    page.tasks[index] = undefined;
    this.#size -= 1;
    if (((page.generation[index] as number) += 1) < MAX_GENERATIONS && slot < this.#limit) {
      page.next[index] = this.#free;
      this.#free = slot;
    }
    this.#untilTidy -= 1;
    if (this.#untilTidy === 0 || this.#size === this.#lowMark) this.#tidy();
    return task;
  }

  #clear(bucket: number): void {
    const ring = this.#rings;
    ring.next[bucket] = ring.previous[bucket] = bucket;
    this.#earliest[bucket] = Infinity;
    (this.#occupied[bucket >> 5] as number) &= ~(1 << (bucket & 31));
  }

  /** Of the lowest level that isn't empty (I2), since the buckets are counted level by level. */
  #firstBucket(): number {
    for (let word = 0; word < this.#occupied.length; word += 1) {
      const bits = this.#occupied[word] as number;
      if (bits !== 0) return (word << 5) + 31 - Math.clz32(bits & -bits);
    }
    return -1;
  }

  /** Over the levels below, now that time has come to it. What is far and stays so goes back where it was. */
  #spread(bucket: number): void {
    this.#farAt = (Math.floor(this.#at / NEAR_MS) + 1) * NEAR_MS;
    let slot = this.#rings.next[bucket] as number;
    this.#clear(bucket);
    while (slot !== bucket) {
      const page = this.#page(slot);
      const index = slot & IN_PAGE;
      const after = page.next[index] as number;
      this.#link(slot, page, index);
      slot = after;
    }
  }

  #newSlot(): number {
    if (this.#limit < this.#end) this.#list(MAX_SLOTS);
    if (this.#free !== 0) return this.#free;
    const slot = this.#end;
    if (slot === MAX_SLOTS) throw new RangeError(`at most ${MAX_SLOTS} timers may be set`);
    if ((slot & IN_PAGE) === 0) {
      this.#untilTidy = this.#pages.push(new Page()) << PAGE_BITS;
      this.#lowMark = slot >> 4;
    }
    this.#page(slot).generation[slot & IN_PAGE] = this.#firstGeneration;
    this.#end += 1; // its `next` is 0 still, which is right: nothing else is free
    return slot;
  }

  /**
   * Gives up the pages that a burst has left, each time half of the timers are gone. A timer that has outlived the burst
   * may stand in the way; so once in a while the upper half is closed to newcomers, and in the end it is idle.
   */
  #tidy(): void {
    const pages = this.#pages;
    const slots = pages.length << PAGE_BITS;
    const isDue = this.#untilTidy === 0;
    if (isDue) this.#untilTidy = slots;
    this.#lowMark = this.#size === 0 ? -1 : this.#size >> 1;
    if (pages.length === 1 || 16 * this.#size > slots) return;
    let kept = pages.length;
    while (kept > 1 && pages[kept - 1]?.isIdle === true) kept -= 1;
    if (2 * kept <= pages.length) {
      for (const { generation } of pages.splice(kept))
        this.#firstGeneration = generation.reduce((most, each) => Math.max(most, each), this.#firstGeneration); // (I4)
      this.#end = Math.min(this.#end, kept << PAGE_BITS);
      this.#list(MAX_SLOTS);
    } else if (isDue) this.#list((pages.length >> 1) << PAGE_BITS);
  }

  /** Links the free slots before `limit`, the lowest first. */
  #list(limit: number): void {
    this.#limit = limit;
    this.#free = 0;
    for (let slot = Math.min(this.#end, limit) - 1; slot >= BUCKETS; slot -= 1) {
      const page = this.#page(slot);
      const index = slot & IN_PAGE;
      if (page.tasks[index] !== undefined || page.generation[index] === MAX_GENERATIONS) continue;
      page.next[index] = this.#free;
      this.#free = slot;
    }
  }
}
