/** The events that were parsed last: those of one event's notifications come one after the other. */
import type { Event } from "../model.ts";

const CAPACITY = 32;

export class EventCache {
  readonly #read: (n: number) => Event | undefined;
  readonly #events = new Map<number, Event>();

  constructor(read: (n: number) => Event | undefined) {
    this.#read = read;
  }

  get(n: number): Event | undefined {
    const event = this.#events.get(n) ?? this.#read(n);
    if (event === undefined) return undefined;
    this.#events.delete(n);
    this.#events.set(n, event);
    if (this.#events.size > CAPACITY) this.#events.delete(this.#events.keys().next().value as number);
    return event;
  }
}
