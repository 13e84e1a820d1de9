/** The jobs of one queue that have not ended, each where the next look at it is cheap, and the unique keys they hold. */
import { Heap } from "sluice/internal";
import type { EndState, Entry } from "./entry.ts";

export class Line {
  // I1  a pending job is in #scheduled or #ready, a running one in #running, and one that has ended in none
  // I2  a key's holder has not ended
  readonly #scheduled = new Heap<Entry>((a, b) => a.runAt < b.runAt);
  readonly #ready = new Heap<Entry>(goesFirst);
  readonly #running = new Heap<Entry>((a, b) => a.leaseUntil < b.leaseUntil);
  readonly #holders = new Map<string, Entry>();
  /** The latest time by which a job has become ready. */
  #readyAt = -Infinity;

  /** Of the ready jobs, the one to be claimed next. */
  first(now: number): Entry | undefined {
    if (now < this.#readyAt) this.#unready(); // the clock was put back
    this.#readyAt = now;
    for (let due = this.#scheduled.peek(); due !== undefined && due.runAt <= now; due = this.#scheduled.peek())
      move(due, this.#ready);
    return this.#ready.peek();
  }

  /**
   * Takes out the jobs whose lease has lapsed; the caller puts each somewhere else. Newest first: of several that lost
   * one key, the newest gets it back.
   */
  takeLapsed(now: number): Entry[] {
    const lapsed: Entry[] = [];
    for (let next = this.#running.peek(); next !== undefined && next.leaseUntil <= now; next = this.#running.peek()) {
      move(next, undefined);
      lapsed.push(next);
    }
    return lapsed.toSorted((a, b) => b.number - a.number);
  }

  /** When `first` or `takeLapsed` will have something. */
  nextAt(now: number): number | undefined {
    if (this.first(now) !== undefined) return now;
    const next = Math.min(this.#scheduled.peek()?.runAt ?? Infinity, this.#running.peek()?.leaseUntil ?? Infinity);
    return next === Infinity ? undefined : next;
  }

  wait(entry: Entry, runAt: number): void {
    entry.state = "pending";
    entry.runAt = runAt;
    move(entry, this.#scheduled);
  }

  run(entry: Entry, leaseUntil: number): void {
    entry.state = "running";
    entry.leaseUntil = leaseUntil;
    move(entry, this.#running);
  }

  end(entry: Entry, state: EndState): void {
    entry.state = state;
    move(entry, undefined);
    if (entry.uniqueKey !== undefined && this.hasKey(entry)) this.#holders.delete(entry.uniqueKey);
  }

  holder(key: string | undefined): Entry | undefined {
    return key === undefined ? undefined : this.#holders.get(key);
  }

  /** Whether the job still has the key that it was given, if it was given one. */
  hasKey(entry: Entry): boolean {
    return entry.uniqueKey === undefined || this.#holders.get(entry.uniqueKey) === entry;
  }

  /** Whether the job has the key that it wants, if it wants one: it takes the key if nobody has it. */
  takeKey(entry: Entry): boolean {
    if (this.holder(entry.uniqueKey) === undefined) this.giveKey(entry);
    return this.hasKey(entry);
  }

  /** Takes the key from whoever has it. */
  giveKey(entry: Entry): void {
    if (entry.uniqueKey !== undefined) this.#holders.set(entry.uniqueKey, entry);
  }

  /** What is ready will be so again, if it still is. */
  #unready(): void {
    for (let entry = this.#ready.peek(); entry !== undefined; entry = this.#ready.peek()) move(entry, this.#scheduled);
  }
}

/** Into the heap, and out of the one where it was. */
function move(entry: Entry, heap: Heap<Entry> | undefined): void {
  entry.heap?.remove(entry);
  entry.heap = heap;
  heap?.push(entry);
}

function goesFirst(a: Entry, b: Entry): boolean {
  if (a.priority !== b.priority) return a.priority > b.priority;
  return a.runAt === b.runAt ? a.number < b.number : a.runAt < b.runAt;
}
