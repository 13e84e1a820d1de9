/**
 * Ships log records to a collector, in batches. Logging never waits and never throws: when the collector is slow or dead
 * the oldest records are dropped. How many were lost so far is told with each batch, so that a gap is seen as one.
 */
import { type Clock, Queue } from "sluice";

export type LogFields = Readonly<Record<string, unknown>>;

export interface Batch {
  /** Counts from 1: a batch that comes twice is one. */
  readonly number: number;
  /** JSON texts, oldest first. */
  readonly records: readonly string[];
  /** Records of this source that were lost so far, and are in no batch. */
  readonly lost: number;
}

/** Resolves when the collector has the batch. */
export type SendBatch = (batch: Batch, signal: AbortSignal) => Promise<unknown>;

export interface LogShipperOptions {
  /** Records kept while the collector is slow. @default 10_000 */
  readonly capacity?: number | undefined;
  /** Records in a batch, at most. @default 500 */
  readonly maxBatch?: number | undefined;
  /** How long the first record of a batch waits for more. @default 1_000 */
  readonly maxWaitMs?: number | undefined;
  /** Told of a batch that was given up. It must not log. */
  readonly onLost?: ((error: unknown, records: number) => void) | undefined;
  readonly clock?: Clock | undefined;
}

export type LogShipperStats = Readonly<{
  waiting: number;
  shipped: number;
  lost: number;
}>;

export class LogShipper {
  // I1  a record that was logged is waiting, in the batch under way, shipped or lost, and counted as what it is once
  // I2  one batch is under way at a time, so that they come in order
  readonly #send: SendBatch;
  readonly #options: LogShipperOptions;
  readonly #queue: Queue<string>;
  readonly #haste = new AbortController();
  readonly #ended: Promise<void>;
  #batches = 0;
  #shipped = 0;
  #lost = 0;

  constructor(send: SendBatch, options: LogShipperOptions = {}) {
    const { capacity = 10_000, clock } = options;
    this.#send = send;
    this.#options = options;
    this.#queue = new Queue<string>(capacity, {
      whenFull: "drop-oldest",
      onUndelivered: () => void (this.#lost += 1),
      clock,
    });
    this.#ended = this.#ship();
  }

  /** `shipped` and `lost` are of those that were logged so far; the rest is waiting or under way. */
  stats(): LogShipperStats {
    return { waiting: this.#queue.size, shipped: this.#shipped, lost: this.#lost };
  }

  /** Takes the record as it is now. Once stopping, it is lost. */
  log(message: string, fields: LogFields = {}): void {
    if (!this.#queue.offer(toJson(message, fields))) this.#lost += 1;
  }

  /** Takes no more records, and resolves when those it has are shipped or lost. */
  async stop(): Promise<void> {
    this.#queue.close();
    await this.#ended;
  }

  /** Gives up what isn't shipped yet: for when the time to stop in is over. */
  abort(reason: unknown): void {
    this.#queue.close();
    this.#haste.abort(reason);
  }

  async #ship(): Promise<void> {
    for (let records = await this.#next(); records !== undefined; records = await this.#next()) {
      try {
        await this.#sendNext(records);
        this.#shipped += records.length;
      } catch (error) {
        this.#lost += records.length;
        this.#tell(error, records.length);
      }
    }
  }

  #tell(error: unknown, records: number): void {
    try {
      this.#options.onLost?.(error, records);
    } catch {
      // who can't hear of it must not end the shipping; the loss is counted, and told with the next batch
    }
  }

  /** Undefined once closed and empty. */
  async #next(): Promise<string[] | undefined> {
    const { maxBatch = 500, maxWaitMs = 1_000 } = this.#options;
    try {
      return await this.#queue.takeBatch(maxBatch, { maxWaitMs });
    } catch {
      return undefined;
    }
  }

  async #sendNext(records: readonly string[]): Promise<void> {
    this.#haste.signal.throwIfAborted();
    this.#batches += 1;
    await this.#send({ number: this.#batches, records, lost: this.#lost }, this.#haste.signal);
  }
}

/** At once, since the caller may change what it logged; and what is no JSON is no reason to fail a request. */
function toJson(message: string, fields: LogFields): string {
  try {
    return JSON.stringify({ message, ...fields, toJSON: undefined }); // one of the fields' own may give no text at all
  } catch (error) {
    return JSON.stringify({ message, unloggable: error instanceof Error ? String(error) : typeof error });
  }
}
