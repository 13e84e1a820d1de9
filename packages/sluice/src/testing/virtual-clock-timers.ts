/** The timers of a `VirtualClock`, by due time, then in the order they were set. */
import type { Timer, TimerTask } from "../clock/clock.ts";
import { Heap, type HeapNode } from "../internal/heap.ts";

export interface VirtualTimer extends Timer {
  /** Whether `runToIdle` doesn't wait for it. */
  background: boolean;
}

export class VirtualTimers {
  // I1  `awaited` counts the timers that are set, not in the background, and will come one day
  awaited = 0;
  /** How many were set so far: what is set next has this as its `order`. */
  order = 0;
  readonly #heap = new Heap<VirtualTimerEntry>(isEarlier);

  get size(): number {
    return this.#heap.size;
  }

  get first(): VirtualTimerEntry | undefined {
    return this.#heap.peek();
  }

  add(dueAt: number, task: TimerTask, background: boolean): VirtualTimerEntry {
    const entry = new VirtualTimerEntry(this, dueAt, task, background);
    this.order += 1;
    this.#heap.push(entry);
    this.awaited += entry.awaited;
    return entry;
  }

  /** Does nothing for a timer that has left already. */
  remove(entry: VirtualTimerEntry): void {
    if (entry.slot === -1) return;
    this.#heap.remove(entry);
    this.awaited -= entry.awaited;
  }
}

export class VirtualTimerEntry implements VirtualTimer, HeapNode {
  readonly dueAt: number;
  readonly order: number;
  readonly task: TimerTask;
  slot = -1;
  readonly #timers: VirtualTimers;
  #background: boolean;

  constructor(timers: VirtualTimers, dueAt: number, task: TimerTask, background: boolean) {
    this.#timers = timers;
    this.dueAt = dueAt;
    this.order = timers.order;
    this.task = task;
    this.#background = background;
  }

  /** What it adds to the count: 0 or 1. */
  get awaited(): number {
    return this.#background || this.dueAt === Infinity ? 0 : 1;
  }

  get background(): boolean {
    return this.#background;
  }

  set background(background: boolean) {
    const before = this.awaited;
    this.#background = background;
    if (this.slot !== -1) this.#timers.awaited += this.awaited - before;
  }

  cancel(): void {
    this.#timers.remove(this);
  }
}

function isEarlier(a: VirtualTimerEntry, b: VirtualTimerEntry): boolean {
  return a.dueAt === b.dueAt ? a.order < b.order : a.dueAt < b.dueAt;
}
