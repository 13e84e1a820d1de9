/** Whatever is called in whatever order, what is stored agrees with itself. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { ClaimedJob } from "@sluice/jobs";
import type { SqliteStore } from "@sluice/jobs/sqlite";
import * as fc from "fast-check";
import { VirtualClock } from "sluice/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { RunCounts } from "../dispatch/run-counts.ts";
import type { Change, Outcome, Refused } from "./calls.ts";
import { channelQueue, EXPAND_QUEUE, roundOf } from "./queues.ts";
import { call, openStore } from "./store.ts";

const LEASE_MS = 1_000;
const RUN = 7;
const EMAIL = channelQueue("email");

const clock = new VirtualClock({ wallStartAt: 1_000_000 });
let folder: string;
let store: SqliteStore;
let db: DatabaseSync;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "model-"));
  store = await openStore(join(folder, "dispatcher.sqlite"), clock);
  db = new DatabaseSync(join(folder, "dispatcher.sqlite"));
});

afterAll(async () => {
  db.close();
  await store.close();
  rmSync(folder, { recursive: true });
});

const OUTCOMES: readonly Outcome[] = [
  { kind: "delivered", durationMs: 1, answer: "taken" },
  { kind: "failed", durationMs: 1, error: "later", permanent: false, retryInMs: 40 },
  { kind: "failed", durationMs: 1, error: "never", permanent: true, retryInMs: undefined },
  { kind: "interrupted", durationMs: 1 },
];

type Step = readonly [act: "begin" | "settle" | "turnAway" | "close" | "bury", which: number, outcome: number];
type Plan = readonly (Step | "accept" | "expand" | "redrive" | "pass" | "crash")[];

/** One run of a dispatcher that has no order in what it does. */
class Walk {
  readonly counts = new RunCounts();
  /** Every claim there ever was: most of them are lost or spent. */
  readonly #claimed: ClaimedJob[] = [];
  #events = 0;

  async step(step: Plan[number]): Promise<void> {
    if (step === "accept") await this.#accept();
    else if (step === "expand") await this.#expand();
    else if (step === "redrive") await this.#redrive();
    else if (step === "pass") await clock.advance(60);
    else if (step === "crash") await clock.advance(LEASE_MS).then(() => store.sweep({ maxCrashes: 99 }));
    else await this.#attempt(step);
  }

  async #accept(): Promise<void> {
    const event = { id: `${this.#events}`, source: "s", type: "t", subject: undefined, time: undefined, data: "1" };
    this.#events += 1;
    await call(store, "accept", { capacity: 5, events: [event, event] });
  }

  async #expand(): Promise<void> {
    const [job] = await store.claim({ queue: EXPAND_QUEUE, max: 1, leaseMs: LEASE_MS, worker: "w" });
    if (job === undefined) return;
    const event = Number(job.payload);
    const planned = ["defer", "drop"].map((overLimit) => {
      const id = `${overLimit} ${event}`;
      return { id, user: "ann", channel: "email", rule: "r", template: "t", overLimit: overLimit as "defer" | "drop" };
    });
    await call(store, "expand", { run: RUN, claim: job, event, planned });
  }

  async #redrive(): Promise<void> {
    const ended = db.prepare("SELECT count(*) AS n FROM notifications WHERE status = 'dead'").get() as { n: number };
    expect(await call(store, "redrive", { run: RUN, filter: {}, max: 99 })).toBe(ended.n);
    for (let i = 0; i < ended.n; i += 1) this.counts.moved("email", { from: "dead", to: "queued", reason: undefined });
  }

  async #attempt([act, which, outcome]: Step): Promise<void> {
    const [fresh] = act === "begin" ? await store.claim({ queue: EMAIL, max: 1, leaseMs: LEASE_MS, worker: "w" }) : [];
    if (fresh !== undefined) this.#claimed.push(fresh);
    const job = fresh ?? this.#claimed.at(which % Math.max(1, this.#claimed.length));
    if (job === undefined) return;
    const input = { run: RUN, claim: job, ...roundOf(job.payload), deadlineMs: 5_000 };
    if (act === "begin") {
      const answer = await call(store, "begin", { ...input, perUser: { count: 3, perMs: 600 } });
      if (answer.kind !== "go") this.#count(answer);
      else this.counts.moved("email", { from: answer.from, to: "sending", reason: undefined });
    } else if (act === "settle") {
      const { n } = db
        .prepare("SELECT count(*) AS n FROM notifications WHERE n = ? AND status = 'sending'")
        .get(input.notification) as { n: number };
      if (n === 0) return; // nobody settles what was not begun
      this.#count(await call(store, "finish", { ...input, outcome: OUTCOMES[outcome] as Outcome }));
    } else if (act === "turnAway")
      this.#count(await call(store, "turnAway", { ...input, delayMs: 30, why: "p rests" }));
    else if (act === "close") this.#count(await call(store, "close", { ...input, to: "dropped", reason: "gone" }));
    else await this.#bury(input);
  }

  /** As the store does it: the job is put aside first. */
  async #bury({ notification, round }: { notification: number; round: number }): Promise<void> {
    const before = db.prepare("SELECT status FROM notifications WHERE n = ?").get(notification) as { status: "queued" };
    const job = `json_extract(payload, '$.notification') = ${notification} AND json_extract(payload, '$.round') = ${round}`;
    if (!(await call(store, "bury", { run: RUN, notification, round, reason: "poison" }))) return;
    db.exec(`DELETE FROM sluice_jobs WHERE queue = '${EMAIL}' AND ${job}`);
    this.counts.moved("email", { from: before.status, to: "dead", reason: "poison" });
  }

  #count(answer: Change | Refused): void {
    if (answer.kind === "changed") this.counts.moved("email", answer);
  }
}

function all(sql: string): Record<string, unknown>[] {
  return db
    .prepare(sql)
    .all()
    .map((row) => Object.fromEntries(Object.entries(row)));
}

function check({ counts }: Walk): void {
  const truth = all("SELECT channel, status, count(*) AS number FROM notifications GROUP BY channel, status");
  expect(all("SELECT * FROM tallies WHERE number <> 0 ORDER BY channel, status")).toEqual(truth);
  for (const status of ["delivered", "deferred", "dropped", "dead"] as const) {
    expect([status, counts.count(status)]).toEqual([
      status,
      truth.find((row) => row["status"] === status)?.["number"] ?? 0,
    ]);
  }
  expect(all("SELECT waiting FROM intake")).toEqual(
    all("SELECT count(*) AS waiting FROM events WHERE expanded_at IS NULL"),
  );
  for (const { n, status, jobs, steps, listed, last, attempts, begun, ended } of all(`
    SELECT n, status, attempts, notifications.steps AS steps,
      (SELECT count(*) FROM sluice_jobs WHERE queue = '${EMAIL}' AND json_extract(payload, '$.notification') = n
        AND json_extract(payload, '$.round') = round) AS jobs,
      (SELECT count(*) FROM steps WHERE notification = n) AS listed,
      (SELECT kind FROM steps WHERE notification = n ORDER BY seq DESC LIMIT 1) AS last,
      (SELECT count(*) FROM steps WHERE notification = n AND kind = 'attempt') AS begun,
      (SELECT count(*) FROM steps WHERE notification = n AND kind IN ('delivered', 'failed', 'unknown')) AS ended
    FROM notifications`)) {
    const hasEnded = ["delivered", "dropped", "dead"].includes(String(status));
    expect({ n, status, jobs, listed }).toEqual({ n, status, jobs: hasEnded ? 0 : 1, listed: steps });
    expect(begun).toBe(attempts);
    if (status === "sending") expect(last).toBe("attempt");
    if (status === "delivered" || status === "deferred" || status === "dropped") expect(last).toBe(status);
    expect(Number(begun) - Number(ended)).toBeGreaterThanOrEqual(0);
    expect(Number(begun) - Number(ended)).toBeLessThanOrEqual(1);
  }
}

it("keeps counts, jobs and histories in step under any plan of calls, crashes and redrives", async () => {
  const act = fc.constantFrom("begin", "begin", "begin", "settle", "settle", "settle", "turnAway", "close", "bury");
  const attempt = fc.tuple(act, fc.nat(50), fc.nat(OUTCOMES.length - 1)) as fc.Arbitrary<Step>;
  const rest = fc.constantFrom("accept", "accept", "expand", "expand", "redrive", "pass", "crash");
  const plans = fc.array(fc.oneof({ arbitrary: attempt, weight: 2 }, { arbitrary: rest, weight: 1 }), {
    maxLength: 60,
  });
  const property = fc.asyncProperty(plans, async (plan: Plan) => {
    for (const table of ["steps", "notifications", "event_bodies", "events", "buckets", "tallies", "sluice_jobs"])
      db.exec(`DELETE FROM ${table}`);
    db.exec("UPDATE intake SET waiting = 0");
    const walk = new Walk();
    for (const step of ["accept", "expand", ...plan] as const) await walk.step(step);
    check(walk);
  });
  const found: Plan = [["begin", 0, 0], ["begin", 0, 0], ["bury", 0, 0], "redrive", ["begin", 0, 0]];
  await fc.assert(property, { numRuns: 60, examples: [[found]] });
});
