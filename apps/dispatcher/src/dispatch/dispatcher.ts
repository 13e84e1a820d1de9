/**
 * The dispatcher, wired: intake puts events into the store, expanders turn them into notifications, and one line of
 * deliverers for each channel sends them. A channel's line is as wide as its bulkhead and claims for itself alone, so
 * that a slow channel takes nothing from another.
 */
import { randomInt } from "node:crypto";
import { SETTLED, Worker, type StopReport as JobStopReport } from "@sluice/jobs";
import type { SqliteStore } from "@sluice/jobs/sqlite";
import type { Logger } from "pino";
import { type Clock, type KeyedCircuitBreaker, RetryBudget, sleep, systemClock } from "sluice";
import type { Channel } from "../channels/channel.ts";
import type { Config } from "../config/config.ts";
import type { Health } from "../intake/http.ts";
import { indexRules } from "../rules/match.ts";
import { compileTemplates } from "../rules/render.ts";
import { channelQueue, EXPAND_QUEUE } from "../storage/queues.ts";
import { Reader, type Standing } from "../storage/reader.ts";
import { openStore } from "../storage/store.ts";
import { providerBreakers } from "./breakers.ts";
import { Deliverer } from "./deliverer.ts";
import { Expander } from "./expander.ts";
import { Journal } from "./journal.ts";
import { recentEvents } from "./recent-events.ts";
import type { RunCounts } from "./run-counts.ts";
import { Upkeep } from "./upkeep.ts";

export interface DispatcherOptions {
  /** The database; it is made if it isn't there. */
  readonly file: string;
  readonly config: Config;
  /** Closed with the dispatcher. */
  readonly channels: readonly Channel[];
  readonly log: Logger;
  /** How long what is being sent may take to end at a stop. @default 10_000 */
  readonly graceMs?: number | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
  /** Draws back-offs. @default chance itself */
  readonly random?: (() => number) | undefined;
}

/** What a stop did with the work that was under way. */
export interface StopReport {
  /** Ended by itself. */
  readonly finished: number;
  /** Broken off and given back: the next start takes it up at once. */
  readonly released: number;
  /** Neither: it is taken up when its lease has lapsed. */
  readonly lost: number;
}

/** Crashes that are put up with: a process may be killed more often than any one notification is at fault. */
const MAX_CRASHES = 20;
const ASK_MS = 50;
const GRACE_MS = 10_000;
const ABORT_MS = 5_000;

export class Dispatcher {
  readonly journal: Journal;
  readonly reader: Reader;
  readonly #store: SqliteStore;
  readonly #workers: readonly Worker[];
  readonly #upkeep: Upkeep;
  readonly #channels: readonly Channel[];
  readonly #clock: Clock;
  readonly #graceMs: number;
  /** By channel. */
  readonly #breakers = new Map<string, KeyedCircuitBreaker>();
  #stopped: Promise<StopReport> | undefined;

  /** Rejects with `StoreOpenError`. Nothing is delivered before `start`. */
  static async open(options: DispatcherOptions): Promise<Dispatcher> {
    const store = await openStore(options.file, options.clock);
    try {
      return new Dispatcher(options, store, new Reader(options.file));
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  private constructor(options: DispatcherOptions, store: SqliteStore, reader: Reader) {
    const { config, channels, log, clock = systemClock, random } = options;
    const { limits, intake } = config;
    const journal = new Journal(store, config, randomInt(1, 2 ** 47));
    const { renderer, faults } = compileTemplates(config.templates, channels);
    if (faults.length > 0) throw new Error(`a template can't be used: ${faults[0]?.message}`);
    const rules = indexRules(config, channels);
    const events = recentEvents((n) => reader.event(n), clock);
    const expander = new Expander({ rules, events, journal, log });
    const shared = { limits, users: rules.users, renderer, reader, events, journal, clock, random };
    const common = {
      leaseMs: limits.leaseMs,
      maxCrashes: MAX_CRASHES,
      clock,
      ...(random !== undefined && { random }),
      onError: (error: unknown, context: object) => log.error({ err: error, ...context }, "a worker met an error"),
    };
    this.journal = journal;
    this.reader = reader;
    this.#store = store;
    this.#channels = channels;
    this.#graceMs = options.graceMs ?? GRACE_MS;
    this.#clock = clock;
    this.#upkeep = new Upkeep({ store, journal, channels: channels.map(({ name }) => name), clock, log });
    const expanders = new Worker(store, EXPAND_QUEUE, (job) => expander.expand(job).then(() => SETTLED), {
      ...common,
      concurrency: intake.expanders,
    });
    const deliverers = channels.map((channel) => {
      const breakers = providerBreakers(channel.name, limits, clock);
      this.#breakers.set(channel.name, breakers);
      const budget = new RetryBudget({ ...limits.retryBudget, clock, name: `retries of ${channel.name}` });
      const deliverer = new Deliverer({ ...shared, channel, breakers, budget });
      return new Worker(
        store,
        channelQueue(channel.name),
        (job, { signal }) => deliverer.deliver(job, signal).then(() => SETTLED),
        { ...common, concurrency: limits.concurrency[channel.name] ?? 1 },
      );
    });
    this.#workers = [expanders, ...deliverers];
  }

  /** What this run has done so far. */
  get counts(): RunCounts {
    return this.journal.counts;
  }

  standing(): Standing {
    return this.reader.standing();
  }

  health(): Health {
    const { waiting, notifications } = this.standing();
    const trouble = this.#stopped === undefined ? this.journal.trouble : "it is stopping";
    return {
      ok: trouble === undefined,
      ...(trouble !== undefined && { trouble }),
      waiting,
      notifications: Object.fromEntries([...notifications].map(([name, by]) => [name, Object.fromEntries(by)])),
      breakers: Object.fromEntries([...this.#breakers].map(([name, breakers]) => [name, breakers.stats()])),
    };
  }

  start(): void {
    for (const worker of this.#workers) worker.start();
    this.#upkeep.start();
  }

  /**
   * Resolves when every notification is delivered, deferred, dropped or dead. What waits for a provider's breaker is
   * waited for too, for up to `patienceMs`: it takes seconds, where a user's limit may take hours.
   */
  async whenIdle(patienceMs: number, signal?: AbortSignal): Promise<void> {
    const until = this.#clock.now() + patienceMs;
    for (;;) {
      const activity = this.reader.activity(Math.floor(this.#clock.wallNow()));
      if (activity === "idle" || (activity === "resting" && this.#clock.now() >= until)) return;
      await sleep(ASK_MS, { signal, clock: this.#clock });
    }
  }

  /**
   * Stops claiming, lets what is being sent end within `graceMs`, then aborts it and gives it back, and closes
   * everything. Idempotent.
   */
  stop(): Promise<StopReport> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<StopReport> {
    const [, ...reports] = await Promise.all([
      this.#upkeep.stop(),
      ...this.#workers.map((worker) => worker.stop({ drainMs: this.#graceMs, abortMs: ABORT_MS })),
    ]);
    await Promise.all(this.#channels.map((channel) => channel.close()));
    this.reader.close();
    await this.#store.close();
    const sum = (of: (report: JobStopReport) => number): number => reports.reduce((total, each) => total + of(each), 0);
    const { interrupted } = this.counts; // which the workers take for finished, since the outcome was recorded
    return {
      finished: sum(({ finished }) => finished) - interrupted,
      released: sum(({ released }) => released.length) + interrupted,
      lost: sum(({ lost }) => lost.length),
    };
  }
}
