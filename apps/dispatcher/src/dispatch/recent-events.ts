/** The events that were read last: those of one event's notifications come one after the other. */
import { Cache, type Clock } from "sluice";
import type { StoredEvent } from "../storage/reader.ts";

export type RecentEvents = Cache<number, StoredEvent | undefined>;

/** Of their JSON; parsed it is some times as much. */
const MAX_CHARACTERS = 4 * 1024 * 1024;
const MAX_EVENTS = 1_000;

/** Since `read` answers in the turn of the call, no wait goes on to be ended by a stop: `load` needs no signal. */
export function recentEvents(read: (n: number) => StoredEvent | undefined, clock: Clock): RecentEvents {
  return new Cache<number, StoredEvent | undefined>(
    (n, context) => {
      const stored = read(n);
      if (stored === undefined) context.ttlMs = 0; // it would take the place of one that is there
      return stored;
    },
    {
      maxEntries: MAX_EVENTS,
      maxWeight: MAX_CHARACTERS,
      weigh: (stored) => Math.min(stored?.characters ?? 0, MAX_CHARACTERS), // or the largest would be read each time
      clock,
      name: "events read last",
    },
  );
}
