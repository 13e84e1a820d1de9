/**
 * The procedures as the dispatcher calls them: typed, and each answer counted for the run. What a call did is durable
 * when it resolves.
 */
import type { Claim } from "@sluice/jobs";
import type { SqliteStore } from "@sluice/jobs/sqlite";
import type { Config } from "../config/config.ts";
import { IntakeFullError, type Accepted, type Event, type EventSink, type Planned } from "../model.ts";
import type {
  Attempting,
  BeginAnswer,
  Calls,
  Change,
  DeadFilter,
  Outcome,
  PruneAnswer,
  PruneInput,
  Refused,
} from "../storage/calls.ts";
import { publicId } from "../storage/public-id.ts";
import type { Round } from "../storage/queues.ts";
import { call } from "../storage/store.ts";
import { enter } from "./phases.ts";
import { RunCounts } from "./run-counts.ts";

/** One claimed job of a notification, and the channel it is counted under. */
export interface Delivery extends Round {
  readonly claim: Claim;
  readonly channel: string;
}

export interface JournalConfig {
  readonly limits: Pick<Config["limits"], "perUser" | "deadlineMs">;
  readonly intake: Pick<Config["intake"], "capacity">;
}

const RETRY_INTAKE_MS = 1_000;

export class Journal implements EventSink {
  readonly counts: RunCounts = new RunCounts();
  readonly #store: SqliteStore;
  readonly #config: JournalConfig;
  /** Tells this run's changes from those of others on the same file. */
  readonly #run: number;
  #trouble: string | undefined;

  constructor(store: SqliteStore, config: JournalConfig, run: number) {
    this.#store = store;
    this.#config = config;
    this.#run = run;
  }

  /** Why the store's last call failed, if it did. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  async accept(events: readonly Event[]): Promise<Accepted[]> {
    const { capacity } = this.#config.intake;
    const input = events.map(({ id, source, type, subject, time, data }) => {
      return { id, source, type, subject, time, data: JSON.stringify(data) };
    });
    const answer = this.#call("accept", { capacity, events: input });
    enter("intake");
    const isNew = await answer;
    if (isNew === undefined) throw new IntakeFullError(capacity, RETRY_INTAKE_MS);
    const accepted = isNew.filter(Boolean).length;
    this.counts.events += accepted;
    this.counts.duplicates += isNew.length - accepted;
    return isNew.map((each) => ({ outcome: each ? "accepted" : "duplicate" }));
  }

  async expand(claim: Claim, n: number, event: Event, planned: readonly Planned[]): Promise<void> {
    const rows = planned.map((each) => ({ ...each, id: publicId(n, event, each) }));
    const answer = await this.#call("expand", { run: this.#run, claim, event: n, planned: rows });
    if (answer.kind === "refused") this.counts.refused += 1;
  }

  /** The event can't be expanded, now or ever. */
  async abandon(n: number, reason: string, claim?: Claim): Promise<boolean> {
    const done = await this.#call("abandon", { claim, event: n, reason });
    if (done) this.counts.failedEvents += 1;
    return done;
  }

  async begin(delivery: Delivery): Promise<BeginAnswer> {
    const { perUser, deadlineMs } = this.#config.limits;
    const answer = await this.#call("begin", { ...this.#attempting(delivery), perUser, deadlineMs });
    if (answer.kind !== "go") return this.#counted(delivery.channel, answer);
    this.counts.moved(delivery.channel, { from: answer.from, to: "sending", reason: undefined });
    if (answer.attempt > 1) this.counts.retried += 1;
    return answer;
  }

  async finish(delivery: Delivery, outcome: Outcome): Promise<Change | Refused> {
    const { deadlineMs } = this.#config.limits;
    const settled = this.#call("finish", { ...this.#attempting(delivery), outcome, deadlineMs });
    enter("settle");
    const answer = await settled;
    if (outcome.kind === "interrupted" && answer.kind === "changed") this.counts.interrupted += 1;
    return this.#counted(delivery.channel, answer);
  }

  /** For a time, without an attempt. */
  async turnAway(delivery: Delivery, why: string, delayMs: number): Promise<Change | Refused> {
    const { deadlineMs } = this.#config.limits;
    const answer = await this.#call("turnAway", {
      ...this.#attempting(delivery),
      why,
      delayMs,
      deadlineMs,
    });
    return this.#counted(delivery.channel, answer);
  }

  async close(delivery: Delivery, to: "dropped" | "dead", reason: string): Promise<Change | Refused> {
    return this.#counted(delivery.channel, await this.#call("close", { ...this.#attempting(delivery), to, reason }));
  }

  /** The notification's job has been put aside by the store. */
  bury({ notification, round }: Round, reason: string): Promise<boolean> {
    return this.#call("bury", { run: this.#run, notification, round, reason });
  }

  redrive(filter: DeadFilter, max: number): Promise<number> {
    return this.#call("redrive", { run: this.#run, filter, max });
  }

  prune(input: PruneInput): Promise<PruneAnswer> {
    return this.#call("prune", input);
  }

  async #call<K extends keyof Calls>(name: K, input: Parameters<Calls[K]>[0]): Promise<ReturnType<Calls[K]>> {
    try {
      const answer = await call(this.#store, name, input);
      this.#trouble = undefined;
      return answer;
    } catch (error) {
      this.#trouble = error instanceof Error ? error.message : String(error);
      throw error;
    }
  }

  #attempting({ claim, notification, round }: Delivery): Attempting {
    return { run: this.#run, claim, notification, round };
  }

  #counted<T extends Change | Refused>(channel: string, answer: T): T {
    if (answer.kind === "refused") this.counts.refused += 1;
    else this.counts.moved(channel, answer);
    return answer;
  }
}
