import type { Clock } from "../clock/clock.ts";
import type { QueueStore } from "../flow/queue-store.ts";
import { coarseNow } from "../internal/coarse-now.ts";
import { Ask } from "./ask.ts";

/** Messages as they were told, and those of who waits for a reply. */
export type Entry<M, R> = M | Ask<M, R>;

/**
 * First in, first out. A message whose asker has left counts no more, and is passed over when its turn comes, so that its
 * place is free at once. Messages come in bursts and are handled in bursts: what comes goes into one array while the
 * other is emptied, and then they change places, which takes half as long as a ring that follows each burst.
 */
export class MailboxStore<M, R> implements QueueStore<Entry<M, R>, object, Entry<M, R>> {
  // I1  #going from #next to #end, then #coming to #count, are pairs in order: an entry, and when it was brought; all other
  //     slots are undefined and keep nothing alive
  // I2  the first entry is no hole; there are at most as many holes as others, or MIN
  size = 0;
  #going: unknown[] = [];
  #next = 0;
  #end = 0;
  #coming: unknown[] = [];
  #count = 0;
  #holes = 0;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isReady(): boolean {
    return this.size > 0;
  }

  /** In whole milliseconds. */
  get oldestAt(): number | undefined {
    if (this.size === 0) return undefined;
    this.#turnOver();
    return this.#going[this.#next + 1] as number;
  }

  enter(entry: Entry<M, R>): Entry<M, R> {
    return entry;
  }

  itemOf(entry: Entry<M, R>): Entry<M, R> {
    return entry;
  }

  priorityOf(): number {
    return 0;
  }

  add(entry: Entry<M, R>, broughtAt?: number): void {
    const at = broughtAt ?? coarseNow(this.#clock);
    if (entry instanceof Ask) entry.at = "mailbox";
    this.#append(entry, Math.floor(at)); // a fraction would take 16 B more
    this.size += 1;
  }

  peek(): Entry<M, R> {
    this.#turnOver();
    return this.#going[this.#next] as Entry<M, R>;
  }

  shift(): Entry<M, R> {
    this.size -= 1;
    const entry = this.#remove();
    if (entry instanceof Ask) entry.at = "gone";
    if (this.#holes > 0) this.#passOver();
    return entry;
  }

  evict(): { readonly item: Entry<M, R> } | undefined {
    return this.size === 0 ? undefined : { item: this.shift() };
  }

  clear(): Entry<M, R>[] {
    return Array.from({ length: this.size }, () => this.shift());
  }

  /** An ask that is in here is not to be handled any more. */
  forget(ask: Ask<M, R>): void {
    ask.at = "gone";
    this.size -= 1;
    this.#holes += 1;
    this.#passOver();
    if (this.#holes > Math.max(MIN, this.size)) this.#compact();
  }

  #append(entry: unknown, at: unknown): void {
    this.#coming[this.#count] = entry;
    this.#coming[this.#count + 1] = at;
    this.#count += 2;
  }

  #remove(): Entry<M, R> {
    this.#turnOver();
    const entry = this.#going[this.#next] as Entry<M, R>;
    this.#going[this.#next] = this.#going[this.#next + 1] = undefined;
    this.#next += 2;
    return entry;
  }

  /** So that the first entry is in #going, if there is one. */
  #turnOver(): void {
    if (this.#next < this.#end) return;
    const emptied = this.#going;
    this.#going = this.#coming;
    this.#end = this.#count;
    this.#next = this.#count = 0;
    this.#coming = emptied.length > MIN * 4 && emptied.length > 4 * this.#end ? [] : emptied;
  }

  #passOver(): void {
    while (this.#holes > 0 && isHole(this.peek())) {
      this.#remove();
      this.#holes -= 1;
    }
  }

  #compact(): void {
    const old = [...this.#going.slice(this.#next, this.#end), ...this.#coming.slice(0, this.#count)];
    this.#going = [];
    this.#coming = [];
    this.#next = this.#end = this.#count = this.#holes = 0;
    for (let index = 0; index < old.length; index += 2) {
      if (!isHole(old[index])) this.#append(old[index], old[index + 1]);
    }
  }
}

const MIN = 16;

function isHole(entry: unknown): boolean {
  return entry instanceof Ask && entry.at === "gone";
}
