/**
 * Looks after what no attempt does: notifications whose jobs the store has put aside because they crash their process,
 * and what is older than anybody asks for.
 */
import type { JobRecord } from "@sluice/jobs";
import type { SqliteStore } from "@sluice/jobs/sqlite";
import type { Logger } from "pino";
import type { Clock, Timer } from "sluice";
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
const PRUNED_AT_ONCE = 500;

export class Upkeep {
  readonly #options: UpkeepOptions;
  #timer: Timer | undefined;
  #round: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(options: UpkeepOptions) {
    this.#options = options;
  }

  start(): void {
    this.#round = this.#run();
  }

  /** Resolves when the round under way has ended. Idempotent. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#round;
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#options;
    try {
      await this.#bury();
      await this.#prune();
    } catch (error) {
      log.warn({ err: error }, "upkeep failed and is tried again later");
    }
    if (this.#isStopped) return;
    const task = { onTimer: (): void => void (this.#round = this.#run()) };
    this.#timer = clock.setTimer(EVERY_MS, task, { background: true });
  }

  async #bury(): Promise<void> {
    const { journal, channels, log } = this.#options;
    for (const queue of [EXPAND_QUEUE, ...channels.map(channelQueue)]) {
      for (const { payload, reason = "its job is dead" } of await this.#putAside(queue)) {
        const isEvent = queue === EXPAND_QUEUE;
        const done = isEvent ? journal.abandon(Number(payload), reason) : journal.bury(roundOf(payload), reason);
        if (await done) log.error({ queue, payload, reason }, "a job was put aside, and what it was for is given up");
      }
    }
  }

  async #putAside(queue: string): Promise<JobRecord[]> {
    return this.#options.store.list({ queue, states: ["quarantined", "dead"] }, { limit: 1_000 });
  }

  async #prune(): Promise<void> {
    const { store, journal, clock } = this.#options;
    const before = Math.floor(clock.wallNow()) - RETENTION_MS;
    while (!this.#isStopped && (await journal.prune(before, PRUNED_AT_ONCE)) === PRUNED_AT_ONCE);
    await store.prune();
  }
}
