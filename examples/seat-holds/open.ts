/** Opens a hall with one of the three ways in which holds end, all else alike. */
import { JobExpiry } from "./job-expiry.ts";
import { QueueExpiry } from "./queue-expiry.ts";
import { type Expiry, type ExpiryOptions, SeatHolds } from "./seat-holds.ts";
import { Seats } from "./seats.ts";
import { SweepExpiry } from "./sweep-expiry.ts";

export const KINDS = ["sweep", "delay queue", "job"] as const;
export type Kind = (typeof KINDS)[number];

export interface OpenOptions extends ExpiryOptions {
  readonly path: string;
  readonly seats: readonly string[];
  /** @default five minutes */
  readonly holdMs?: number | undefined;
  /** Of the sweep. @default one minute */
  readonly everyMs?: number | undefined;
  /** Of the delay queue. @default 100_000 */
  readonly capacity?: number | undefined;
}

export async function openSeatHolds(kind: Kind, options: OpenOptions): Promise<SeatHolds> {
  const { holdMs = 300_000, clock } = options;
  const seats = new Seats(options.path);
  seats.add(options.seats);
  return new SeatHolds(seats, await openExpiry(kind, seats, options), { holdMs, clock });
}

async function openExpiry(kind: Kind, seats: Seats, options: OpenOptions): Promise<Expiry> {
  const { everyMs = 60_000, capacity = 100_000 } = options;
  if (kind === "sweep") return new SweepExpiry(seats, { ...options, everyMs });
  if (kind === "delay queue") return new QueueExpiry(seats, { ...options, capacity });
  return JobExpiry.open(seats, options);
}
