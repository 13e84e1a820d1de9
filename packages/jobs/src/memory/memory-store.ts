/**
 * Jobs in memory: the reference model that every other driver is compared with, and enough where jobs may die with the
 * process (tests, a first try, work that is worthless after a restart).
 */
import { ClosedError, systemClock, type Clock } from "sluice";
import type { Added, Claim, ClaimedJob, DeadJob, JobRecord, NewJob } from "../job.ts";
import { Listeners } from "../listeners.ts";
import { CANCELLED, CRASHED, DUPLICATE, poison } from "../reasons.ts";
import type {
  ClaimRequest,
  JobFilter,
  Page,
  QueueStats,
  Redriven,
  Settlement,
  Store,
  StoreOptions,
  SweepOptions,
  Swept,
} from "../store.ts";
import {
  checkClaimRequest,
  checkFilter,
  checkHeartbeat,
  checkName,
  checkNarrowFilter,
  parseId,
  prepareJobs,
  prepareOptions,
  preparePage,
  prepareSettlements,
  prepareSweep,
  type PreparedJob,
  type PreparedSettlement,
} from "../validate.ts";
import { newEntry, stateOf, toClaimed, toDead, toRecord, type EndState, type Entry } from "./entry.ts";
import { Line } from "./line.ts";

export interface MemoryStoreOptions extends StoreOptions {
  /** Its wall time is the store's. @default systemClock */
  readonly clock?: Clock | undefined;
}

export class MemoryStore implements Store {
  // I1  #entries has every job, in order of its number, which is that of arrival
  // I2  tokens and numbers only grow, so a claim is the latest of its job exactly if their tokens are equal
  readonly #clock: Clock;
  readonly #maxPayloadBytes: number;
  readonly #keepMs: Readonly<Record<EndState, number>>;
  readonly #entries = new Map<number, Entry>();
  readonly #lines = new Map<string, Line>();
  readonly #listeners = new Listeners();
  #lastNumber = 0;
  #lastToken = 0;
  #closed = false;

  constructor(options: MemoryStoreOptions = {}) {
    const { retention, maxPayloadBytes } = prepareOptions(options);
    const { succeededMs, deadMs } = retention;
    this.#keepMs = { succeeded: succeededMs, cancelled: succeededMs, dead: deadMs, quarantined: deadMs };
    this.#maxPayloadBytes = maxPayloadBytes;
    this.#clock = options.clock ?? systemClock;
  }

  async now(): Promise<number> {
    return this.#now();
  }

  async add(jobs: readonly NewJob[]): Promise<Added[]> {
    const prepared = prepareJobs(jobs, this.#maxPayloadBytes);
    const now = this.#now();
    const added = prepared.map((job) => this.#add(job, now));
    this.#listeners.tell(prepared.filter((_, index) => added[index]?.outcome !== "existing").map(({ queue }) => queue));
    return added;
  }

  async claim(request: ClaimRequest): Promise<ClaimedJob[]> {
    checkClaimRequest(request);
    const { queue, max, leaseMs } = request;
    const now = this.#now();
    const line = this.#line(queue);
    const claimed: ClaimedJob[] = [];
    for (let entry = line.first(now); entry !== undefined && claimed.length < max; entry = line.first(now)) {
      this.#lastToken += 1;
      entry.token = this.#lastToken;
      entry.attempts += 1;
      line.run(entry, now + leaseMs);
      claimed.push(toClaimed(entry));
    }
    return claimed;
  }

  async settle(settlements: readonly Settlement[]): Promise<boolean[]> {
    const prepared = prepareSettlements(settlements, this.#maxPayloadBytes);
    const now = this.#now();
    const woken = new Set<string>();
    const answers = prepared.map((settlement) => {
      const entry = this.#held(settlement);
      if (entry === undefined) return false;
      this.#settle(entry, settlement, now);
      if (entry.state === "pending") woken.add(entry.queue);
      return true;
    });
    this.#listeners.tell(woken);
    return answers;
  }

  async heartbeat(claims: readonly Claim[], leaseMs: number): Promise<boolean[]> {
    checkHeartbeat(claims, leaseMs);
    const leaseUntil = this.#now() + leaseMs;
    return claims.map((claim) => {
      const entry = this.#held(claim);
      const line = entry && this.#line(entry.queue);
      if (entry === undefined || !line?.hasKey(entry)) return false;
      line.run(entry, leaseUntil);
      return true;
    });
  }

  async sweep(options: SweepOptions = {}): Promise<Swept> {
    const { queue, maxCrashes } = prepareSweep(options);
    const now = this.#now();
    const swept = { ready: 0, dead: 0, quarantined: 0, duplicates: 0, ended: [] as DeadJob[] };
    const woken = new Set<string>();
    const lines = queue === undefined ? [...this.#lines.values()] : [this.#line(queue)];
    for (const entry of lines.flatMap((line) => line.takeLapsed(now))) {
      this.#crash(entry, maxCrashes, now);
      if (entry.state === "pending") woken.add(entry.queue);
      swept[outcomeOfCrash(entry)] += 1;
      if (entry.state === "dead" || entry.state === "quarantined") swept.ended.push(toDead(entry, entry.state));
    }
    this.#listeners.tell(woken);
    return swept;
  }

  async nextAt(queue: string): Promise<number | undefined> {
    checkName("queue", queue);
    return this.#line(queue).nextAt(this.#now());
  }

  async get(id: string): Promise<JobRecord | undefined> {
    const now = this.#now();
    const entry = this.#entries.get(parseId(id) ?? 0);
    return entry === undefined ? undefined : toRecord(entry, now);
  }

  async list(filter: JobFilter, page: Page = {}): Promise<JobRecord[]> {
    checkFilter(filter);
    const { limit, after } = preparePage(page);
    const now = this.#now();
    const later = this.#matching(filter, now).filter(({ number }) => number > after);
    return later.slice(0, limit).map((entry) => toRecord(entry, now));
  }

  async stats(queue: string): Promise<QueueStats> {
    checkName("queue", queue);
    const now = this.#now();
    const count = { scheduled: 0, ready: 0, running: 0, succeeded: 0, dead: 0, cancelled: 0, quarantined: 0 };
    let earliest = now;
    for (const entry of this.#entries.values()) {
      if (entry.queue !== queue) continue;
      const state = stateOf(entry, now);
      count[state] += 1;
      if (state === "ready") earliest = Math.min(earliest, entry.runAt);
    }
    const { scheduled, ready, running, dead, quarantined } = count;
    return { scheduled, ready, running, dead, quarantined, oldestReadyMs: now - earliest };
  }

  async redrive(filter: JobFilter): Promise<Redriven> {
    checkNarrowFilter(filter);
    const now = this.#now();
    const ended = this.#matching(filter, now).filter(
      ({ state }) => state === "dead" || state === "quarantined" || state === "cancelled",
    );
    const redriven = ended.filter((entry) => this.#line(entry.queue).takeKey(entry));
    for (const entry of redriven) {
      entry.attempts = entry.crashes = 0;
      entry.endedAt = undefined;
      this.#wait(entry, now, undefined);
    }
    this.#listeners.tell(redriven.map((entry) => entry.queue));
    return { redriven: redriven.length, duplicates: ended.length - redriven.length };
  }

  async cancel(filter: JobFilter): Promise<number> {
    checkNarrowFilter(filter);
    const now = this.#now();
    const cancelled = this.#matching(filter, now).filter(({ state }) => state === "pending");
    for (const entry of cancelled) this.#end(entry, "cancelled", CANCELLED, now);
    return cancelled.length;
  }

  async prune(): Promise<number> {
    const now = this.#now();
    const before = this.#entries.size;
    for (const { number, state, endedAt } of this.#entries.values()) {
      if (state === "pending" || state === "running" || endedAt === undefined) continue;
      if (endedAt + this.#keepMs[state] <= now) this.#entries.delete(number);
    }
    return before - this.#entries.size;
  }

  onReady(listener: (queue: string) => void): () => void {
    return this.#listeners.add(listener);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#entries.clear();
    this.#lines.clear();
  }

  #now(): number {
    if (this.#closed) throw new ClosedError("job store");
    return Math.floor(this.#clock.wallNow());
  }

  #line(queue: string): Line {
    let line = this.#lines.get(queue);
    if (line === undefined) this.#lines.set(queue, (line = new Line()));
    return line;
  }

  #add(job: PreparedJob, now: number): Added {
    const line = this.#line(job.queue);
    const runAt = job.runAt ?? now + job.delayMs;
    const holder = line.holder(job.uniqueKey);
    const hasLapsed = holder?.state === "running" && holder.leaseUntil <= now;
    if (holder !== undefined && !hasLapsed) {
      const id = String(holder.number);
      if (!job.replace || holder.state !== "pending") return { id, outcome: "existing" };
      holder.payload = job.payload;
      holder.priority = job.priority;
      this.#wait(holder, runAt, undefined);
      return { id, outcome: "replaced" };
    }
    this.#lastNumber += 1;
    const entry = newEntry(this.#lastNumber, job, now);
    this.#entries.set(entry.number, entry);
    line.giveKey(entry);
    this.#wait(entry, runAt, undefined);
    return { id: String(entry.number), outcome: "created" };
  }

  /** The job that a claim still holds, its lease lapsed or not (I2). */
  #held({ id, token }: Claim): Entry | undefined {
    const entry = this.#entries.get(parseId(id) ?? 0);
    return entry?.state === "running" && entry.token === token ? entry : undefined;
  }

  #settle(entry: Entry, settlement: PreparedSettlement, now: number): void {
    switch (settlement.kind) {
      case "complete":
        entry.result = settlement.result;
        return this.#end(entry, "succeeded", undefined, now);
      case "fail": {
        const { error, retryInMs } = settlement;
        entry.errors.push({ at: now, attempt: entry.attempts, kind: "failure", message: error });
        if (retryInMs === undefined || entry.attempts >= entry.maxAttempts) return this.#end(entry, "dead", error, now);
        return this.#putBack(entry, now + retryInMs, undefined, now);
      }
      case "snooze":
        entry.attempts -= 1;
        return this.#putBack(entry, now + settlement.delayMs, settlement.reason, now);
      case "release":
        entry.attempts -= 1;
        return this.#putBack(entry, entry.runAt, undefined, now);
      default:
        return settlement satisfies never;
    }
  }

  #crash(entry: Entry, maxCrashes: number, now: number): void {
    entry.crashes += 1;
    entry.errors.push({ at: now, attempt: entry.attempts, kind: "crash", message: CRASHED });
    if (entry.crashes >= maxCrashes) this.#end(entry, "quarantined", poison(entry.crashes), now);
    else if (entry.attempts >= entry.maxAttempts) this.#end(entry, "dead", CRASHED, now);
    else this.#putBack(entry, entry.runAt, undefined, now);
  }

  #putBack(entry: Entry, runAt: number, reason: string | undefined, now: number): void {
    if (this.#line(entry.queue).takeKey(entry)) this.#wait(entry, runAt, reason);
    else this.#end(entry, "cancelled", DUPLICATE, now);
  }

  #wait(entry: Entry, runAt: number, reason: string | undefined): void {
    entry.reason = reason;
    this.#line(entry.queue).wait(entry, runAt);
  }

  #end(entry: Entry, state: EndState, reason: string | undefined, now: number): void {
    this.#line(entry.queue).end(entry, state);
    entry.reason = reason;
    entry.endedAt = now;
    if (this.#keepMs[state] === 0) this.#entries.delete(entry.number);
  }

  /** Oldest first. */
  #matching({ queue, states, ids }: JobFilter, now: number): Entry[] {
    const named = ids && [...new Set(ids.map((id) => parseId(id) ?? 0))].toSorted((a, b) => a - b);
    const entries =
      named === undefined ? [...this.#entries.values()] : named.map((number) => this.#entries.get(number));
    return entries.filter(
      (entry) =>
        entry !== undefined &&
        (queue === undefined || entry.queue === queue) &&
        (states === undefined || states.includes(stateOf(entry, now))),
    ) as Entry[];
  }
}

function outcomeOfCrash({ state }: Entry): Exclude<keyof Swept, "ended"> {
  return state === "dead" || state === "quarantined" ? state : state === "cancelled" ? "duplicates" : "ready";
}
