/** The events that were parsed last: those of one event's notifications come one after the other. */
import type { Event } from "../model.ts";
import type { StoredEvent } from "../storage/reader.ts";

/** Of their JSON; parsed it is some times as much. */
const MAX_CHARACTERS = 4 * 1024 * 1024;
const MAX_EVENTS = 1_000;

export class EventCache {
  // I1  #characters is the sum over #events, and within its bound or that of a single event
  readonly #read: (n: number) => StoredEvent | undefined;
  /** The one used last is the last. */
  readonly #events = new Map<number, StoredEvent>();
  #characters = 0;

  constructor(read: (n: number) => StoredEvent | undefined) {
    this.#read = read;
  }

  get(n: number): Event | undefined {
    const known = this.#events.get(n);
    const stored = known ?? this.#read(n);
    if (stored === undefined) return undefined;
    if (known === undefined) this.#characters += stored.characters;
    else this.#events.delete(n);
    this.#events.set(n, stored);
    this.#makeRoom();
    return stored.event;
  }

  #makeRoom(): void {
    for (const [n, { characters }] of this.#events) {
      const fits = this.#characters <= MAX_CHARACTERS && this.#events.size <= MAX_EVENTS;
      if (fits || this.#events.size === 1) return;
      this.#events.delete(n);
      this.#characters -= characters;
    }
  }
}
