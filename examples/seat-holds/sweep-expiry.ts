/**
 * Looks through the table now and then. The time of a hold is in its row, so that nothing need be planned and nothing is
 * lost with the process; but a hold lasts longer than it should by up to the time between two looks.
 */
import { type Clock, forEachLimit, type Schedule, schedule, systemClock } from "sluice";
import { type Expiry, type ExpiryOptions, tell, TOLD_AT_ONCE } from "./seat-holds.ts";
import type { Seats } from "./seats.ts";

export interface SweepOptions extends ExpiryOptions {
  readonly everyMs: number;
}

export class SweepExpiry implements Expiry {
  readonly #seats: Seats;
  readonly #options: SweepOptions;
  readonly #clock: Clock;
  #sweeps: Schedule | undefined;

  constructor(seats: Seats, options: SweepOptions) {
    this.#seats = seats;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  plan(): void {}

  /** A sweep that goes on when the next is due lets that one out: two would only look twice. */
  start(): void {
    const { everyMs, onError = console.error } = this.#options;
    this.#sweeps = schedule({ everyMs }, () => this.#sweep(), { clock: this.#clock, onError });
  }

  async stop(): Promise<void> {
    await this.#sweeps?.stop();
  }

  async #sweep(): Promise<void> {
    const over = this.#seats.freeOver(this.#clock.wallNow());
    await forEachLimit(over, TOLD_AT_ONCE, ({ seat }) => tell(seat, this.#options));
  }
}
