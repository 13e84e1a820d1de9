/**
 * Makes the end of each hold a durable job, added in the transaction in which the hold begins. It survives the death of
 * any process, whichever process is there runs it, and if it fails or its process dies meanwhile, it is run again.
 */
import { Jobs, Worker } from "@sluice/jobs";
import { SqliteStore } from "@sluice/jobs/sqlite";
import { type Expiry, type ExpiryOptions, TOLD_AT_ONCE } from "./seat-holds.ts";
import type { Hold, Seats } from "./seats.ts";

/** Shorter than any hold, so that those of other processes are found before they are over. */
const POLL_MS = 5_000;

type Over = Pick<Hold, "seat" | "number">;
type Queues = { readonly "hold-over": Over };

export interface JobExpiryOptions extends ExpiryOptions {
  /** The file in which the seats are. */
  readonly path: string;
}

export class JobExpiry implements Expiry {
  readonly #seats: Seats;
  readonly #store: SqliteStore;
  readonly #jobs: Jobs<Queues>;
  readonly #worker: Worker<Over>;

  static async open(seats: Seats, options: JobExpiryOptions): Promise<JobExpiry> {
    // A hold that a loss of power takes back is no loss: who lost it holds the seat anew. So no fsync for each.
    const store = await SqliteStore.open({ path: options.path, clock: options.clock, durability: "normal" });
    return new JobExpiry(seats, store, options);
  }

  private constructor(seats: Seats, store: SqliteStore, { onFreed, clock }: JobExpiryOptions) {
    this.#seats = seats;
    this.#store = store;
    this.#jobs = new Jobs(store);
    this.#worker = new Worker<Over>(
      store,
      "hold-over",
      async ({ payload }) => {
        if (this.#seats.free(payload)) await onFreed(payload.seat); // on a second attempt too, since it may not have ended
      },
      { concurrency: TOLD_AT_ONCE, pollMs: POLL_MS, clock },
    );
  }

  plan({ seat, number, untilAt }: Hold): void {
    this.#jobs.addWithin(this.#seats.db, "hold-over", { seat, number }, { runAt: untilAt });
  }

  start(): void {
    this.#worker.start();
  }

  async stop(): Promise<void> {
    await this.#worker.stop();
    await this.#store.close();
  }
}
