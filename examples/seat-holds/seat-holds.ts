/**
 * Seats that are held for somebody while they pay. A hold ends by itself, and how that comes about is behind `Expiry`:
 * a sweep now and then, a delay queue in memory, or a durable job. Nothing that was planned is ever called off: whoever
 * comes to end a hold asks the table whether it is still that one.
 */
import { type Clock, systemClock } from "sluice";
import type { Hold, Seats } from "./seats.ts";

/** Ends holds that are over, and tells whoever waits for the seat. */
export interface Expiry {
  /**
   * Has `hold` end when it is over. Called within the transaction in which the hold begins, so it does at once all it
   * does. What it throws undoes the hold.
   */
  plan(hold: Hold): void;
  start(): void;
  /** Resolves when what it does has ended. */
  stop(): Promise<void>;
}

export interface ExpiryOptions {
  /** Told of a seat that is free again because a hold was over. */
  readonly onFreed: (seat: string) => unknown;
  /** Told of what `onFreed` throws. @default console.error */
  readonly onError?: ((error: unknown) => void) | undefined;
  readonly clock?: Clock | undefined;
}

/** How many are told at a time of seats that become free together. */
export const TOLD_AT_ONCE = 100;

/** Where there is no second attempt: one who can't be told must not keep the others from being told. */
export async function tell(seat: string, { onFreed, onError = console.error }: ExpiryOptions): Promise<void> {
  try {
    await onFreed(seat);
  } catch (error) {
    onError(error);
  }
}

export interface SeatHoldsOptions {
  readonly holdMs: number;
  readonly clock?: Clock | undefined;
}

export class SeatHolds {
  // I1  a seat is held by one at most, and once sold, stays so
  // I2  a hold is never without a plan of its end: both are committed together, or neither is
  readonly seats: Seats;
  readonly #expiry: Expiry;
  readonly #holdMs: number;
  readonly #clock: Clock;

  constructor(seats: Seats, expiry: Expiry, { holdMs, clock = systemClock }: SeatHoldsOptions) {
    this.seats = seats;
    this.#expiry = expiry;
    this.#holdMs = holdMs;
    this.#clock = clock;
    expiry.start();
  }

  /** Undefined if the seat isn't free. */
  hold(seat: string, holder: string): Hold | undefined {
    return this.#begin((untilAt) => this.seats.take(seat, holder, untilAt));
  }

  /** A hold as long as a new one, from now; undefined if `holder` doesn't hold the seat any more. */
  extend(seat: string, holder: string): Hold | undefined {
    return this.#begin((untilAt) => this.seats.extend(seat, holder, untilAt));
  }

  /** False if `holder` doesn't hold the seat any more. As long as nobody has ended a hold it isn't over. */
  buy(seat: string, holder: string): boolean {
    return this.seats.sell(seat, holder);
  }

  async close(): Promise<void> {
    await this.#expiry.stop();
    this.seats.close();
  }

  #begin(begin: (untilAt: number) => Hold | undefined): Hold | undefined {
    const untilAt = Math.ceil(this.#clock.wallNow()) + this.#holdMs;
    return this.seats.within(() => {
      const hold = begin(untilAt);
      if (hold !== undefined) this.#expiry.plan(hold);
      return hold;
    });
  }
}
