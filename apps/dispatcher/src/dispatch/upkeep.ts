/**
 * Looks after what no attempt does: notifications whose jobs the store has put aside because they crash their process,
 * and what is older than anybody asks for.
 */
import type { JobRecord } from "@sluice/jobs";
import type { SqliteStore } from "@sluice/jobs/sqlite";
import type { Logger } from "pino";
import { type Clock, type Schedule, schedule } from "sluice";
import { channelQueue, EXPAND_QUEUE, roundOf } from "../storage/queues.ts";
import type { Journal } from "./journal.ts";

export interface UpkeepOptions {
  readonly store: SqliteStore;
  readonly journal: Journal;
  readonly channels: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
}

const EVERY_MS = 60_000;
const DAY_MS = 86_400_000;
/** How long an event is known after it came: until then it is a duplicate if it comes again. */
const RETENTION_MS = 30 * DAY_MS;
/** Events looked at in one transaction. */
const PRUNED_AT_ONCE = 500;
/** Jobs of one page: as many as the store gives. */
const PAGE = 1_000;

export class Upkeep {
  readonly #options: UpkeepOptions;
  readonly #end = new AbortController();
  #rounds: Schedule | undefined;
  /** Up to which event, and since when, each old one has been looked at. */
  #pruned = { last: 0, since: -Infinity };

  constructor(options: UpkeepOptions) {
    this.#options = options;
  }

  start(): void {
    const { clock, log } = this.#options;
    this.#rounds = schedule({ delayMs: EVERY_MS, firstAfterMs: 0 }, () => this.#run(), {
      signal: this.#end.signal,
      onError: (error) => log.warn({ err: error }, "upkeep failed and is tried again later"),
      background: true,
      clock,
    });
  }

  /** Resolves when the round under way has ended. Idempotent. */
  async stop(): Promise<void> {
    this.#end.abort();
    await this.#rounds?.drain();
  }

  async #run(): Promise<void> {
    await this.#bury();
    await this.#prune();
  }

  async #bury(): Promise<void> {
    const { journal, channels, log } = this.#options;
    for (const queue of [EXPAND_QUEUE, ...channels.map(channelQueue)]) {
      for await (const { payload, reason = "its job is dead" } of this.#putAside(queue)) {
        const isEvent = queue === EXPAND_QUEUE;
        const done = isEvent ? journal.abandon(Number(payload), reason) : journal.bury(roundOf(payload), reason);
        if (await done) log.error({ queue, payload, reason }, "a job was put aside, and what it was for is given up");
      }
    }
  }

  /** Those that were given up before are among them, until the store forgets them. */
  async *#putAside(queue: string): AsyncGenerator<JobRecord> {
    const { store } = this.#options;
    for (let after: string | undefined, more = true; more && !this.#end.signal.aborted;) {
      const page = await store.list({ queue, states: ["quarantined", "dead"] }, { limit: PAGE, after });
      yield* page;
      after = page.at(-1)?.id;
      more = page.length === PAGE;
    }
  }

  async #prune(): Promise<void> {
    const { store, journal, clock } = this.#options;
    const before = Math.floor(clock.wallNow()) - RETENTION_MS;
    // What has dead notifications is kept, and looked at again but once a day: they may have been redriven meanwhile.
    if (before - this.#pruned.since >= DAY_MS) this.#pruned = { last: 0, since: before };
    for (let more = true; more && !this.#end.signal.aborted;) {
      const page = await journal.prune({ before, after: this.#pruned.last, max: PRUNED_AT_ONCE });
      this.#pruned.last = page.last;
      ({ more } = page);
    }
    await store.prune();
  }
}
