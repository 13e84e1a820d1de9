import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { ClaimedJob } from "@sluice/jobs";
import type { SqliteStore } from "@sluice/jobs/sqlite";
import { VirtualClock } from "sluice/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { NotificationHistory } from "../model.ts";
import type { AcceptedEvent, BeginInput, FinishInput, Outcome, PlannedRow } from "./calls.ts";
import { channelQueue, EXPAND_QUEUE, roundOf } from "./queues.ts";
import { Reader } from "./reader.ts";
import { call, openStore } from "./store.ts";

const LEASE_MS = 30_000;
const DEADLINE_MS = 900_000;
const PER_USER = { count: 2, perMs: 20_000 };

const clock = new VirtualClock({ wallStartAt: 1_000_000 });
let folder: string;
let file: string;
let store: SqliteStore;
let reader: Reader;
/** When the test began. */
let start: number;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "procedures-"));
  file = join(folder, "dispatcher.sqlite");
  store = await openStore(file, clock);
  reader = new Reader(file);
});

// A thread and a file for each test would take most of the time.
beforeEach(() => {
  start = clock.wallNow();
  const db = new DatabaseSync(file);
  for (const table of ["steps", "notifications", "event_bodies", "events", "buckets", "tallies", "sluice_jobs"])
    db.exec(`DELETE FROM ${table}`);
  db.exec("UPDATE intake SET waiting = 0");
  db.close();
});

afterAll(async () => {
  reader.close();
  await store.close();
  rmSync(folder, { recursive: true });
});

const event = (id: string): AcceptedEvent => ({
  id,
  source: "here",
  type: "thing.happened",
  subject: undefined,
  time: undefined,
  data: JSON.stringify({ id }),
});

const accept = (ids: readonly string[], capacity = 100) => call(store, "accept", { capacity, events: ids.map(event) });

const claim = async (queue: string): Promise<ClaimedJob> => {
  const [job] = await store.claim({ queue, max: 1, leaseMs: LEASE_MS, worker: "test" });
  if (job === undefined) throw new Error(`nothing to claim in ${queue}`);
  return job;
};

const row = (id: string, facts: Partial<PlannedRow> = {}): PlannedRow => ({
  id,
  user: "ann",
  channel: "email",
  rule: "everything",
  template: "plain",
  overLimit: "defer",
  ...facts,
});

/** Accepts an event and expands it into these. */
async function expand(planned: readonly PlannedRow[], id = `event of ${planned.map((each) => each.id).join()}`) {
  await accept([id]);
  const job = await claim(EXPAND_QUEUE);
  return call(store, "expand", { run: 1, claim: job, event: Number(job.payload), planned });
}

const attempting = (job: ClaimedJob, run = 1) => ({ run, claim: job, ...roundOf(job.payload) });

const begin = (job: ClaimedJob, facts: Partial<BeginInput> = {}) =>
  call(store, "begin", { ...attempting(job), perUser: PER_USER, deadlineMs: DEADLINE_MS, ...facts });

const finish = (job: ClaimedJob, outcome: Outcome, facts: Partial<FinishInput> = {}) =>
  call(store, "finish", { ...attempting(job), outcome, deadlineMs: DEADLINE_MS, ...facts });

const turnAway = (job: ClaimedJob, delayMs: number) =>
  call(store, "turnAway", { ...attempting(job), delayMs, provider: "mail.test", deadlineMs: DEADLINE_MS });

const DELIVERED: Outcome = { kind: "delivered", durationMs: 12, answer: "250 taken" };
const failed = (retryInMs: number | undefined, permanent = false): Outcome => {
  return { kind: "failed", durationMs: 3, error: "451 later", permanent, retryInMs };
};

const email = channelQueue("email");

const history = (id: string): NotificationHistory => {
  const found = reader.history(id);
  if (found === undefined) throw new Error(`there is no ${id}`);
  return found;
};
const kinds = (id: string): string =>
  history(id)
    .entries.map(({ kind }) => kind)
    .join(" ");

async function die(id: string, facts: Partial<PlannedRow> = {}): Promise<void> {
  await expand([row(id, facts)]);
  const job = await claim(channelQueue(facts.channel ?? "email"));
  await begin(job, { perUser: { count: 100, perMs: 1 } });
  await finish(job, failed(undefined, true));
}

const redrive = (filter: object, max = 10) => call(store, "redrive", { run: 1, filter, max });
const prune = (before: number) => call(store, "prune", { before, max: 10 });

describe("accept", () => {
  it("takes each event once, within a batch and over batches", async () => {
    expect(await accept(["a", "b", "a"])).toEqual([true, true, false]);
    expect(await accept(["b", "c"])).toEqual([false, true]);
    expect((await store.stats(EXPAND_QUEUE)).ready).toBe(3);
    expect(reader.standing().waiting).toBe(3);
  });

  it("writes nothing when there is no room for all of them", async () => {
    expect(await accept(["a", "b"], 3)).toEqual([true, true]);
    expect(await accept(["c", "d"], 3)).toBeUndefined();
    expect(reader.standing().waiting).toBe(2);
    expect((await store.stats(EXPAND_QUEUE)).ready).toBe(2);
    expect(await accept(["c"], 3)).toEqual([true]);
  });

  it("answers for what it knows already, however full it is", async () => {
    await accept(["a", "b"], 2);
    expect(await accept(["b", "a", "b"], 2)).toEqual([false, false, false]);
    expect(await accept(["b", "c", "c"], 3)).toEqual([false, true, false]);
    expect(await accept(["c", "d"], 3)).toBeUndefined();
  });

  it("counts what waits over a restart, and no more what was expanded or abandoned", async () => {
    await accept(["a", "b", "c"], 3);
    await store.close();
    store = await openStore(file, clock);
    expect(await accept(["d"], 3)).toBeUndefined();
    const [first, second] = [await claim(EXPAND_QUEUE), await claim(EXPAND_QUEUE)];
    await call(store, "expand", { run: 1, claim: first, event: Number(first.payload), planned: [] });
    await call(store, "abandon", { claim: second, event: Number(second.payload), reason: "no rule fits" });
    expect(reader.standing().waiting).toBe(1);
    expect(await accept(["d", "e"], 3)).toEqual([true, true]);
  });

  it("keeps an event as it came", async () => {
    const data = JSON.stringify({ text: "Grüße \u2028 🎉", list: [1, null] });
    const full = { ...event("a"), subject: "s", time: "2026-11-29T00:00:00Z", data };
    await call(store, "accept", { capacity: 1, events: [full] });
    expect(reader.event(1)).toEqual({ event: { ...full, data: JSON.parse(data) as unknown }, characters: data.length });
  });
});

describe("expand", () => {
  it("makes each notification and its job, and ends the event's", async () => {
    const planned = [row("n1"), row("n2", { channel: "webhook" }), row("n3", { user: "bob" })];
    expect(await expand(planned)).toEqual({ kind: "expanded", created: 3 });
    expect(await store.stats(EXPAND_QUEUE)).toMatchObject({ ready: 0, running: 0 });
    expect((await store.stats(email)).ready).toBe(2);
    expect((await store.stats(channelQueue("webhook"))).ready).toBe(1);
    expect(kinds("n1")).toBe("accepted matched");
    expect(history("n1")).toMatchObject({ status: "queued", user: "ann", event: { source: "here" } });
  });

  it("makes no notification that is there already", async () => {
    await expand([row("n1")], "a");
    expect(await expand([row("n1"), row("n2")], "b")).toEqual({ kind: "expanded", created: 1 });
    expect((await store.stats(email)).ready).toBe(2);
  });

  it("changes nothing with a claim that is lost", async () => {
    await accept(["a"]);
    const old = await claim(EXPAND_QUEUE);
    await clock.advance(LEASE_MS);
    await store.sweep();
    const job = await claim(EXPAND_QUEUE);
    const facts = { run: 1, event: Number(job.payload), planned: [row("n1")] };
    expect(await call(store, "expand", { ...facts, claim: old })).toEqual({ kind: "refused" });
    expect(reader.history("n1")).toBeUndefined();
    expect(reader.standing().waiting).toBe(1);
    expect(await call(store, "expand", { ...facts, claim: job })).toMatchObject({ created: 1 });
    expect(await call(store, "expand", { ...facts, claim: job })).toEqual({ kind: "refused" });
    expect(reader.standing().waiting).toBe(0);
  });

  it("abandons an event once", async () => {
    await accept(["a"]);
    const job = await claim(EXPAND_QUEUE);
    const input = { claim: job, event: Number(job.payload), reason: "no rule fits" };
    expect(await call(store, "abandon", input)).toBe(true);
    expect(await call(store, "abandon", input)).toBe(false);
    expect(await call(store, "abandon", { ...input, claim: undefined })).toBe(false);
    expect(reader.standing().waiting).toBe(0);
  });
});

describe("begin and finish", () => {
  it("record the intent, then the outcome, and end the job with it", async () => {
    await expand([row("n1")]);
    const job = await claim(email);
    expect(await begin(job)).toEqual({ kind: "go", attempt: 1, failures: 0, from: "queued" });
    expect(kinds("n1")).toBe("accepted matched attempt");
    expect(history("n1").status).toBe("sending");
    await clock.advance(12);
    expect(await finish(job, DELIVERED)).toMatchObject({ kind: "changed", from: "sending", to: "delivered" });
    expect(history("n1").entries.slice(2)).toEqual([
      { at: start, kind: "attempt", attempt: 1 },
      { at: start + 12, kind: "delivered", attempt: 1, durationMs: 12, detail: "250 taken" },
    ]);
    expect(await store.get(job.id)).toBeUndefined();
  });

  it("change nothing with a claim that is lost, nor a second time", async () => {
    await expand([row("n1")]);
    const old = await claim(email);
    await begin(old);
    await clock.advance(LEASE_MS);
    await store.sweep();
    const job = await claim(email);
    for (const outcome of [DELIVERED, failed(10), failed(undefined), { kind: "interrupted", durationMs: 1 } as const])
      expect(await finish(old, outcome)).toEqual({ kind: "refused" });
    expect(await begin(old)).toEqual({ kind: "refused" });
    expect(await turnAway(old, 1_000)).toEqual({ kind: "refused" });
    expect(await call(store, "close", { ...attempting(old), to: "dead", reason: "old" })).toEqual({ kind: "refused" });
    expect(kinds("n1")).toBe("accepted matched attempt");
    expect(await begin(job)).toMatchObject({ attempt: 2 });
    expect(await finish(job, DELIVERED)).toMatchObject({ to: "delivered" });
    expect(await finish(job, DELIVERED)).toEqual({ kind: "refused" });
    expect(await finish(job, failed(undefined))).toEqual({ kind: "refused" });
    expect(kinds("n1")).toBe("accepted matched attempt unknown attempt delivered");
  });

  it("say of an attempt without outcome that it isn't known, and charge the user once", async () => {
    await expand([row("n1"), row("n2")]);
    await begin(await claim(email));
    await clock.advance(LEASE_MS);
    await store.sweep();
    expect(await begin(await claim(email))).toMatchObject({ kind: "go", attempt: 2, failures: 0 });
    expect(kinds("n1")).toBe("accepted matched attempt unknown attempt");
    expect(await begin(await claim(email), { perUser: { count: 2, perMs: 1e9 } })).toMatchObject({ kind: "go" });
  });

  it("put it back for its retry at the time that was asked for, without charging the user again", async () => {
    await expand([row("n1")]);
    const first = await claim(email);
    await begin(first, { perUser: { count: 1, perMs: 1e9 } });
    expect(await finish(first, failed(699.5))).toMatchObject({ from: "sending", to: "queued", reason: "451 later" });
    expect(await store.nextAt(email)).toBe(start + 700);
    await clock.advance(700);
    const second = await claim(email);
    expect(await begin(second, { perUser: { count: 1, perMs: 1e9 } })).toMatchObject({ attempt: 2, failures: 1 });
    await finish(second, DELIVERED);
    expect(kinds("n1")).toBe("accepted matched attempt failed attempt delivered");
    expect(history("n1").entries[3]).toMatchObject({ kind: "failed", until: start + 700, detail: "451 later" });
  });

  it.each([
    ["a permanent failure", failed(undefined, true), "451 later"],
    ["a permanent failure, whatever retry it names", failed(5, true), "451 later"],
    ["the last failure", failed(undefined), "failed 1 times, at last with: 451 later"],
    ["a retry at the deadline", failed(DEADLINE_MS), /deadline.*451 later/],
  ])("make it dead after %s", async (_, outcome, reason) => {
    await expand([row("n1")]);
    const job = await claim(email);
    await begin(job);
    expect(await finish(job, outcome)).toMatchObject({ to: "dead" });
    expect(history("n1").reason).toMatch(reason);
    expect(kinds("n1")).toBe("accepted matched attempt failed dead");
    expect(await store.get(job.id)).toBeUndefined();
    expect(reader.dead({}, 10)).toMatchObject([{ id: "n1", diedAt: start }]);
  });

  it("retry up to the deadline, and not after it", async () => {
    await expand([row("n1")]);
    const first = await claim(email);
    await begin(first);
    expect(await finish(first, failed(DEADLINE_MS - 1))).toMatchObject({ to: "queued" });
    await clock.advance(DEADLINE_MS);
    expect(await begin(await claim(email))).toMatchObject({ kind: "changed", to: "dead" });
    expect(kinds("n1")).toBe("accepted matched attempt failed dead");
    expect(await store.nextAt(email)).toBeUndefined();
  });

  it("give an interrupted attempt back at once, as one whose outcome isn't known", async () => {
    await expand([row("n1")]);
    const job = await claim(email);
    await begin(job);
    expect(await finish(job, { kind: "interrupted", durationMs: 4 })).toMatchObject({ to: "queued" });
    expect(await begin(await claim(email))).toMatchObject({ kind: "go", attempt: 2, failures: 0 });
    expect(kinds("n1")).toBe("accepted matched attempt unknown attempt");
  });

  it("end the job of a notification that has ended", async () => {
    await expand([row("n1")]);
    const job = await claim(email);
    await call(store, "bury", { run: 1, ...roundOf(job.payload), reason: "poison" });
    expect(await begin(job)).toEqual({ kind: "refused" });
    expect(await store.get(job.id)).toBeUndefined();
    expect(kinds("n1")).toBe("accepted matched dead");
  });
});

describe("the user's limit", () => {
  it("lets a burst through at once and gives each later one the next token, charged in advance", async () => {
    await expand(["n1", "n2", "n3", "n4"].map((id) => row(id)));
    const answers = [];
    for (let i = 0; i < 4; i += 1) answers.push(await begin(await claim(email)));
    expect(answers.map((answer) => (answer.kind === "changed" ? answer.to : answer.kind))).toEqual([
      "go",
      "go",
      "deferred",
      "deferred",
    ]);
    expect(history("n3").entries.at(-1)).toMatchObject({ kind: "deferred", until: start + 10_000 });
    expect(history("n4").entries.at(-1)).toMatchObject({ kind: "deferred", until: start + 20_000 });
    await clock.advance(9_999);
    expect(await store.claim({ queue: email, max: 9, leaseMs: LEASE_MS, worker: "test" })).toEqual([]);
    await clock.advance(1);
    expect(await begin(await claim(email))).toMatchObject({ kind: "go", from: "deferred" });
    expect(kinds("n3")).toBe("accepted matched deferred attempt");
  });

  it("gives no second burst after a restart", async () => {
    await expand(["n1", "n2", "n3"].map((id) => row(id)));
    for (const _ of [1, 2]) expect(await begin(await claim(email))).toMatchObject({ kind: "go" });
    await store.close();
    store = await openStore(file, clock);
    expect(await begin(await claim(email))).toMatchObject({ kind: "changed", to: "deferred" });
  });

  it("drops what exceeds it where the rule says so, which costs the user nothing", async () => {
    await expand([row("n1"), row("n2"), row("n3", { overLimit: "drop" }), row("n4")]);
    for (const _ of [1, 2]) await begin(await claim(email));
    expect(await begin(await claim(email))).toMatchObject({ to: "dropped", reason: "over the limit of 2 in 20 s" });
    expect(kinds("n3")).toBe("accepted matched dropped");
    expect(await begin(await claim(email))).toMatchObject({ to: "deferred" });
    expect(history("n4").entries.at(-1)?.until).toBe(start + 10_000);
  });

  it("is each user's own, over all channels", async () => {
    const perUser = { count: 1, perMs: 1_000 };
    await expand([row("n1"), row("n2", { channel: "webhook" }), row("n3", { user: "bob" })]);
    expect(await begin(await claim(email), { perUser })).toMatchObject({ kind: "go" });
    expect(await begin(await claim(channelQueue("webhook")), { perUser })).toMatchObject({ to: "deferred" });
    expect(await begin(await claim(email), { perUser })).toMatchObject({ kind: "go" });
  });
});

it("says where a notification was before only to the run that had put it there", async () => {
  await expand([row("n1"), row("n2")]);
  await turnAway(await claim(email), 1_000);
  await turnAway(await claim(email), 1_000);
  await clock.advance(1_000);
  const [first, second] = [await claim(email), await claim(email)];
  expect(await begin(first, { run: 2 })).toMatchObject({ kind: "go", from: undefined });
  expect(await begin(second)).toMatchObject({ kind: "go", from: "deferred" });
  expect(await finish(first, DELIVERED, { run: 2 })).toMatchObject({ from: "sending" });
});

describe("turnAway", () => {
  it("defers without an attempt or a token, one step of history for all times in a row", async () => {
    await expand([row("n1")]);
    for (let times = 1; times <= 3; times += 1) {
      expect(await turnAway(await claim(email), 999.5)).toMatchObject({ kind: "changed", to: "deferred" });
      await clock.advance(1_000);
    }
    expect(kinds("n1")).toBe("accepted matched deferred");
    expect(history("n1").entries.at(-1)).toMatchObject({ until: start + 3_000 });
    expect(history("n1").reason).toMatch(/mail\.test .* 3 times/);
    expect(await begin(await claim(email), { perUser: { count: 1, perMs: 1e9 } })).toMatchObject({ attempt: 1 });
    expect(kinds("n1")).toBe("accepted matched deferred attempt");
  });

  it("keeps the step of an earlier row of times", async () => {
    await expand([row("n1")]);
    await turnAway(await claim(email), 1_000);
    await clock.advance(1_000);
    const job = await claim(email);
    await begin(job);
    await finish(job, failed(0));
    await turnAway(await claim(email), 1_000);
    expect(kinds("n1")).toBe("accepted matched deferred attempt failed deferred");
  });

  it("does not go on past the deadline", async () => {
    await expand([row("n1")]);
    const job = await claim(email);
    await begin(job);
    await finish(job, failed(0));
    await clock.advance(DEADLINE_MS);
    expect(await turnAway(await claim(email), 1_000)).toMatchObject({ to: "dead" });
  });

  it("waits without a deadline while nothing was attempted", async () => {
    await expand([row("n1")]);
    await turnAway(await claim(email), 3 * DEADLINE_MS);
    await clock.advance(3 * DEADLINE_MS);
    expect(await turnAway(await claim(email), 1_000)).toMatchObject({ to: "deferred" });
  });
});

describe("upkeep", () => {
  it("redrives the dead that a filter names, with retries and deadline anew", async () => {
    await die("n1");
    await die("n2", { user: "bob" });
    await die("n3", { channel: "webhook" });
    await clock.advance(DEADLINE_MS);
    expect(await redrive({ user: "nobody" })).toBe(0);
    expect(await redrive({ user: "bob", channel: "webhook" })).toBe(0);
    expect(await redrive({ ids: ["n1"], channel: "email" })).toBe(1);
    expect(await redrive({ ids: ["n1"] })).toBe(0);
    expect(kinds("n1")).toBe("accepted matched attempt failed dead redriven");
    const job = await claim(email);
    expect(await begin(job)).toMatchObject({ kind: "go", attempt: 2, failures: 0 });
    expect(await finish(job, failed(5))).toMatchObject({ to: "queued" });
    expect(await redrive({}, 1)).toBe(1);
    expect(reader.countDead({})).toBe(1);
  });

  it("buries what the store has put aside, once", async () => {
    await expand([row("n1")]);
    const { notification, round } = roundOf((await claim(email)).payload);
    const bury = () => call(store, "bury", { run: 1, notification, round, reason: "crashed 9 times" });
    expect(await bury()).toBe(true);
    expect(await bury()).toBe(false);
    expect(history("n1")).toMatchObject({ status: "dead", reason: "crashed 9 times" });
    expect(await call(store, "bury", { run: 1, notification: 99, round, reason: "" })).toBe(false);
  });

  it("lets no job of an earlier round move what was redriven", async () => {
    await expand([row("n1")]);
    const old = await claim(email);
    await call(store, "bury", { run: 1, ...roundOf(old.payload), reason: "crashed 9 times" });
    await call(store, "redrive", { run: 1, filter: {}, max: 1 });
    expect(await call(store, "bury", { run: 1, ...roundOf(old.payload), reason: "crashed 9 times" })).toBe(false);
    expect(await begin(old)).toEqual({ kind: "refused" });
    expect(await store.get(old.id)).toBeUndefined();
    expect(await begin(await claim(email))).toMatchObject({ kind: "go", attempt: 1 });
    expect(kinds("n1")).toBe("accepted matched dead redriven attempt");
  });

  it("prunes old events whose notifications have all been delivered or dropped, and keeps the rest", async () => {
    await expand([row("n1")], "old");
    const job = await claim(email);
    await begin(job);
    await finish(job, DELIVERED);
    await die("n2", { user: "bob" });
    await expand([row("n3")], "open");
    await clock.advance(10_000);
    await expand([], "young");
    await accept(["waiting"]);
    expect(await prune(start + 10_000)).toBe(1);
    expect(await prune(start + 10_000)).toBe(0);
    expect(reader.history("n1")).toBeUndefined();
    expect(["n2", "n3"].map((id) => history(id).status)).toEqual(["dead", "queued"]);
    expect(await accept(["old", "open", "waiting", "young"])).toEqual([true, false, false, false]);
  });
});
