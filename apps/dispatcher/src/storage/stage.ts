/** What the tests of the procedures play on: a real file, its writer's thread, a reader, and virtual time. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { ClaimedJob } from "@sluice/jobs";
import type { SqliteStore } from "@sluice/jobs/sqlite";
import { VirtualClock } from "sluice/testing";
import type { NotificationHistory } from "../model.ts";
import type * as calls from "./calls.ts";
import { channelQueue, EXPAND_QUEUE, roundOf } from "./queues.ts";
import { Reader } from "./reader.ts";
import { call, openStore } from "./store.ts";

export const LEASE_MS = 30_000;
export const DEADLINE_MS = 900_000;
export const EMAIL: string = channelQueue("email");
export const DELIVERED: calls.Outcome = { kind: "delivered", durationMs: 12, answer: "250 taken" };
const PER_USER = { count: 2, perMs: 20_000 };
const TABLES = ["steps", "notifications", "event_bodies", "events", "buckets", "tallies", "sluice_jobs"];

export class StoreStage {
  readonly clock: VirtualClock = new VirtualClock({ wallStartAt: 1_000_000 });
  readonly folder: string = mkdtempSync(join(tmpdir(), "procedures-"));
  readonly file: string = join(this.folder, "dispatcher.sqlite");
  store!: SqliteStore;
  reader!: Reader;
  /** When the test began. */
  start = 0;

  async open(): Promise<void> {
    this.store = await openStore(this.file, this.clock);
    this.reader = new Reader(this.file);
  }

  /** For the next test: a thread and a file for each would take most of the time. */
  clear(): void {
    this.start = this.clock.wallNow();
    const db = new DatabaseSync(this.file);
    for (const table of TABLES) db.exec(`DELETE FROM ${table}`);
    db.exec("UPDATE intake SET waiting = 0");
    db.close();
  }

  async restart(): Promise<void> {
    await this.store.close();
    this.store = await openStore(this.file, this.clock);
  }

  async close(): Promise<void> {
    this.reader.close();
    await this.store.close();
    rmSync(this.folder, { recursive: true });
  }

  readonly accept = (ids: readonly string[], capacity = 100): Promise<calls.AcceptAnswer> =>
    call(this.store, "accept", { capacity, events: ids.map(event) });

  readonly claim = async (queue: string): Promise<ClaimedJob> => {
    const [job] = await this.store.claim({ queue, max: 1, leaseMs: LEASE_MS, worker: "test" });
    if (job === undefined) throw new Error(`nothing to claim in ${queue}`);
    return job;
  };

  /** Accepts an event and expands it into these. */
  readonly expand = async (
    planned: readonly calls.PlannedRow[],
    id = `event of ${planned.map((each) => each.id).join()}`,
  ): Promise<calls.ExpandAnswer> => {
    await this.accept([id]);
    const job = await this.claim(EXPAND_QUEUE);
    return call(this.store, "expand", { run: 1, claim: job, event: Number(job.payload), planned });
  };

  readonly attempting = (job: ClaimedJob, run = 1): calls.Attempting => ({ run, claim: job, ...roundOf(job.payload) });

  readonly begin = (job: ClaimedJob, facts: Partial<calls.BeginInput> = {}): Promise<calls.BeginAnswer> =>
    call(this.store, "begin", { ...this.attempting(job), perUser: PER_USER, deadlineMs: DEADLINE_MS, ...facts });

  readonly finish = (
    job: ClaimedJob,
    outcome: calls.Outcome,
    facts: Partial<calls.FinishInput> = {},
  ): Promise<calls.Change | calls.Refused> =>
    call(this.store, "finish", { ...this.attempting(job), outcome, deadlineMs: DEADLINE_MS, ...facts });

  readonly turnAway = (job: ClaimedJob, delayMs: number): Promise<calls.Change | calls.Refused> =>
    call(this.store, "turnAway", {
      ...this.attempting(job),
      delayMs,
      why: "mail.test fails too often and is given a rest",
      deadlineMs: DEADLINE_MS,
    });

  readonly redrive = (filter: calls.DeadFilter, max = 10): Promise<number> =>
    call(this.store, "redrive", { run: 1, filter, max });

  readonly history = (id: string): NotificationHistory => {
    const found = this.reader.history(id);
    if (found === undefined) throw new Error(`there is no ${id}`);
    return found;
  };

  readonly kinds = (id: string): string =>
    this.history(id)
      .entries.map(({ kind }) => kind)
      .join(" ");

  /** Makes a notification and gives it up. */
  readonly die = async (id: string, facts: Partial<calls.PlannedRow> = {}): Promise<void> => {
    await this.expand([row(id, facts)]);
    const job = await this.claim(channelQueue(facts.channel ?? "email"));
    await this.begin(job, { perUser: { count: 100, perMs: 1 } });
    await this.finish(job, failed(undefined, true));
  };
}

export function event(id: string): calls.AcceptedEvent {
  const data = JSON.stringify({ id });
  return { id, source: "here", type: "thing.happened", subject: undefined, time: undefined, data };
}

export function row(id: string, facts: Partial<calls.PlannedRow> = {}): calls.PlannedRow {
  const planned = { user: "ann", channel: "email", rule: "everything", template: "plain" };
  return { id, ...planned, overLimit: "defer", ...facts };
}

export function failed(retryInMs: number | undefined, permanent = false): calls.Outcome {
  return { kind: "failed", durationMs: 3, error: "451 later", permanent, retryInMs };
}
