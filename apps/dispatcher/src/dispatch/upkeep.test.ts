import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SqliteStore } from "@sluice/jobs/sqlite";
import { pino } from "pino";
import { VirtualClock } from "sluice/testing";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Reader } from "../storage/reader.ts";
import { channelQueue, EXPAND_QUEUE, roundOf } from "../storage/queues.ts";
import { openStore } from "../storage/store.ts";
import { Journal } from "./journal.ts";
import { Upkeep } from "./upkeep.ts";

const LIMITS = { perUser: { count: 5, perMs: 1_000 }, deadlineMs: 900_000 };
const DAY_MS = 86_400_000;

let folder: string;
let clock: VirtualClock;
let store: SqliteStore;
let reader: Reader;
let journal: Journal;
let upkeep: Upkeep;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "upkeep-"));
  clock = new VirtualClock();
  store = await openStore(join(folder, "dispatcher.sqlite"), clock);
  reader = new Reader(join(folder, "dispatcher.sqlite"));
  journal = new Journal(store, { limits: LIMITS, intake: { capacity: 10 } }, 1);
  upkeep = new Upkeep({ store, journal, channels: ["email"], clock, log: pino({ level: "silent" }) });
});

afterEach(async () => {
  await upkeep.stop();
  reader.close();
  await store.close();
  rmSync(folder, { recursive: true });
});

const event = { id: "1", source: "here", type: "thing", data: {} };
const planned = { user: "ann", channel: "email", rule: "all", template: "plain", overLimit: "defer" } as const;

/** The clock on the wall alone: nothing that is due in between happens. */
function jump(ms: number): void {
  const before = clock.wallNow.bind(clock);
  clock.wallNow = () => before() + ms;
}

async function claim(queue: string) {
  const [job] = await store.claim({ queue, max: 1, leaseMs: 100, worker: "test" });
  if (job === undefined) throw new Error(`nothing to claim in ${queue}`);
  return job;
}

async function crash(queue: string, max = 1): Promise<void> {
  await store.claim({ queue, max, leaseMs: 100, worker: "test" });
  await clock.advance(100);
  await store.sweep({ maxCrashes: 1 });
}

it("gives up what the store has put aside, and leaves it alone once somebody has redriven it", async () => {
  await journal.accept([event]);
  const job = await claim(EXPAND_QUEUE);
  await journal.expand(job, Number(job.payload), event, [planned]);
  await crash(channelQueue("email"));
  upkeep.start();
  await clock.advance(1);
  expect(reader.dead({}, 1)).toMatchObject([{ reason: expect.stringMatching(/crash/) }]);
  expect(await journal.redrive({}, 1)).toBe(1);
  await clock.advance(120_000);
  expect(reader.countDead({})).toBe(0);
});

it("gives up all that was put aside, however much it is", async () => {
  await journal.accept([event]);
  const job = await claim(EXPAND_QUEUE);
  const many = Array.from({ length: 1_001 }, (_, n) => Object.assign({}, planned, { user: `user-${n}` }));
  await journal.expand(job, Number(job.payload), event, many);
  await crash(channelQueue("email"), many.length);
  upkeep.start();
  await clock.advance(1);
  expect(reader.countDead({})).toBe(1_001);
});

it("gives up an event that can't be expanded, and its place in the intake", async () => {
  await journal.accept([event]);
  await crash(EXPAND_QUEUE);
  upkeep.start();
  await clock.advance(1);
  expect(reader.standing().waiting).toBe(0);
  expect(journal.counts.failedEvents).toBe(1);
  await clock.advance(120_000);
  expect(journal.counts.failedEvents).toBe(1);
});

it("forgets an event after 30 days, and not before", async () => {
  await journal.accept([event]);
  const job = await claim(EXPAND_QUEUE);
  await journal.expand(job, Number(job.payload), event, []);
  await clock.advance(30 * DAY_MS);
  upkeep.start();
  await clock.advance(1);
  expect(await journal.accept([event])).toEqual([{ outcome: "duplicate" }]);
  await clock.advance(60_000);
  expect(await journal.accept([event])).toEqual([{ outcome: "accepted" }]);
});

it("keeps an event while a notification of it is dead, and forgets it a day after its redrive at the latest", async () => {
  await journal.accept([event, { ...event, id: "2" }]);
  const job = await claim(EXPAND_QUEUE);
  await journal.expand(job, Number(job.payload), event, [planned]);
  const other = await claim(EXPAND_QUEUE);
  await journal.expand(other, Number(other.payload), { ...event, id: "2" }, []);
  await crash(channelQueue("email"));
  jump(31 * DAY_MS);
  upkeep.start();
  await clock.advance(1);
  expect(await journal.accept([event, { ...event, id: "2" }])).toEqual([
    { outcome: "duplicate" },
    { outcome: "accepted" },
  ]);
  await journal.redrive({}, 1);
  const again = await claim(channelQueue("email"));
  await journal.close({ claim: again, ...roundOf(again.payload), channel: "email" }, "dropped", "enough");
  jump(DAY_MS);
  await clock.advance(60_000);
  expect(await journal.accept([event])).toEqual([{ outcome: "accepted" }]);
});

it("looks again a minute after a round that failed", async () => {
  await journal.accept([event]);
  await crash(EXPAND_QUEUE);
  const list = store.list.bind(store);
  store.list = () => {
    store.list = list;
    return Promise.reject(new Error("no disk"));
  };
  upkeep.start();
  await clock.advance(59_999);
  expect(journal.counts.failedEvents).toBe(0);
  await clock.advance(2);
  expect(journal.counts.failedEvents).toBe(1);
});

it("stops when the round under way has ended, which it lets skip what is left", async () => {
  const { promise: answered, resolve: answer } = Promise.withResolvers<[]>();
  let asked = 0;
  store.list = () => {
    asked += 1;
    return answered;
  };
  upkeep.start();
  await clock.advance(1);
  let isStopped = false;
  const stopped = upkeep.stop().then(() => (isStopped = true));
  await clock.advance(120_000);
  expect(isStopped).toBe(false);
  answer([]);
  await stopped;
  expect(asked).toBe(1);
  expect(clock.timers).toBe(0);
});

it("stops for good, also before it was started", async () => {
  await upkeep.stop();
  expect(clock.timers).toBe(0);
  upkeep.start();
  await upkeep.stop();
  await upkeep.stop();
  expect(clock.timers).toBe(0);
});
