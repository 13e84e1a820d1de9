/** What an application does with jobs: adds them, looks at them, and repairs. The worker runs them. */
import type { Added, JobRecord, Json, NewJob } from "./job.ts";
import type { JobFilter, Page, QueueStats, Redriven, Store } from "./store.ts";

export type JobOptions = Omit<NewJob, "queue" | "payload">;

/**
 * A store seen from the application. `Q` names the queues and what their jobs carry, and makes the compiler check both:
 * `new Jobs<{ mail: { to: string } }>(store)`.
 */
export class Jobs<Q extends Readonly<Record<keyof Q, Json>> = Record<string, Json>> {
  readonly store: Store;

  constructor(store: Store) {
    this.store = store;
  }

  /** Once it resolves, the job is as durable as the store is set to be. */
  async add<K extends keyof Q & string>(queue: K, payload: Q[K], options: JobOptions = {}): Promise<Added> {
    return only(await this.store.add([{ ...options, queue, payload }]));
  }

  /** All of them or none, with the same options. */
  addMany<K extends keyof Q & string>(queue: K, payloads: readonly Q[K][], options: JobOptions = {}): Promise<Added[]> {
    return this.store.add(payloads.map((payload) => Object.assign({}, options, { queue, payload })));
  }

  /**
   * Adds a job within a transaction that the caller has begun: the job is there if and only if it commits. Throws, while
   * the caller can still roll back, what `add` rejects with, what the database says, and a `TypeError` if `transaction`
   * is none of the store's, or the store has no transactions. What one is, the store says: `SqliteStore.addWithin`.
   */
  addWithin<K extends keyof Q & string>(
    transaction: unknown,
    queue: K,
    payload: Q[K],
    options: JobOptions = {},
  ): Added {
    const { store } = this;
    if (store.addWithin === undefined) throw new TypeError("transaction can't be used: the store has none");
    return only(store.addWithin(transaction, [{ ...options, queue, payload }]));
  }

  get(id: string): Promise<JobRecord | undefined> {
    return this.store.get(id);
  }

  /** Oldest first. */
  list(filter: JobFilter = {}, page?: Page): Promise<JobRecord[]> {
    return this.store.list(filter, page);
  }

  /** Gives dead, quarantined and cancelled jobs another chance. `list` with the same filter and these states previews. */
  redrive(filter: JobFilter): Promise<Redriven> {
    return this.store.redrive(filter);
  }

  /** Cancels jobs that don't run yet; their number. */
  cancel(filter: JobFilter): Promise<number> {
    return this.store.cancel(filter);
  }

  stats(queue: keyof Q & string): Promise<QueueStats> {
    return this.store.stats(queue);
  }
}

function only([added]: readonly Added[]): Added {
  if (added === undefined) throw new Error("the store gave no answer");
  return added;
}
