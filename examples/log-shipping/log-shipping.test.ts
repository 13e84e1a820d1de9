import { afterEach, expect, it } from "vitest";
import { seededRandom, VirtualClock } from "sluice/testing";
import { Collector } from "./collector.ts";
import { type Batch, LogShipper, type LogShipperOptions, type SendBatch } from "./log-shipping.ts";
import { postTo, type PostOptions } from "./post.ts";
import { startService } from "./service.ts";

const cleanups: (() => Promise<unknown> | undefined)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

/** A collector that answers when the test says so. */
class Slow {
  readonly batches: Batch[] = [];
  readonly #answers: PromiseWithResolvers<undefined>[] = [];

  readonly send: SendBatch = (batch, signal) => {
    const answer = Promise.withResolvers<undefined>();
    this.batches.push(batch);
    this.#answers.push(answer);
    signal.addEventListener("abort", () => answer.reject(signal.reason), { once: true });
    return answer.promise;
  };

  answer(error?: Error): void {
    const answer = this.#answers.shift();
    if (error === undefined) answer?.resolve(undefined);
    else answer?.reject(error);
  }
}

function setUp(options: LogShipperOptions = {}): { slow: Slow; clock: VirtualClock; logs: LogShipper } {
  const slow = new Slow();
  const clock = new VirtualClock();
  const logs = new LogShipper(slow.send, { capacity: 100, maxBatch: 10, maxWaitMs: 1_000, clock, ...options });
  cleanups.push(async () => {
    logs.abort(new Error("the test is over"));
    await logs.stop();
  });
  return { slow, clock, logs };
}

async function setUpReal(
  options: LogShipperOptions & Partial<PostOptions> = {},
): Promise<{ collector: Collector; logs: LogShipper }> {
  const collector = await Collector.start();
  const send = postTo(collector.url, { source: "test", baseMs: 1, random: seededRandom(1), ...options });
  const logs = new LogShipper(send, { maxWaitMs: 5, ...options });
  cleanups.push(async () => {
    logs.abort(new Error("the test is over"));
    await logs.stop();
    await collector.stop();
  });
  return { collector, logs };
}

function logMany(logs: LogShipper, from: number, to: number): void {
  for (let number = from; number < to; number += 1) logs.log(`#${number}`);
}

const messagesOf = ({ records }: Batch): string[] =>
  records.map((record) => (JSON.parse(record) as { message: string }).message);

it("ships a batch when it is full, and a smaller one when its first record has waited long enough", async () => {
  const { slow, clock, logs } = setUp();
  logMany(logs, 0, 12);
  await clock.advance(0);
  expect(slow.batches.map(messagesOf)).toMatchObject([{ length: 10 }]);
  slow.answer();
  await clock.advance(999);
  expect(slow.batches).toHaveLength(1);
  await clock.advance(1);
  expect(slow.batches.map(messagesOf)[1]).toEqual(["#10", "#11"]);
});

it("F01.1: drops the oldest when the collector is slow, and tells how many with the next batch", async () => {
  const { slow, clock, logs } = setUp();
  logMany(logs, 0, 10);
  await clock.advance(0);
  logMany(logs, 10, 410);
  expect(logs.stats()).toEqual({ waiting: 100, shipped: 0, lost: 300 });
  slow.answer();
  await clock.advance(0);
  expect(slow.batches[1]).toMatchObject({ number: 2, lost: 300 });
  expect(messagesOf(slow.batches[1] as Batch)[0]).toBe("#310");
});

it("counts a batch that was given up as lost, goes on with the next, and tells of it", async () => {
  const lost: unknown[] = [];
  const { slow, clock, logs } = setUp({ onLost: (error, records) => lost.push(error, records) });
  logMany(logs, 0, 20);
  await clock.advance(0);
  const error = new Error("down");
  slow.answer(error);
  await clock.advance(0);
  expect(lost).toEqual([error, 10]);
  expect(slow.batches[1]).toMatchObject({ lost: 10, records: { length: 10 } });
  slow.answer();
  await clock.advance(0);
  expect(logs.stats()).toEqual({ waiting: 0, shipped: 10, lost: 10 });
});

it("sends one batch at a time", async () => {
  const { slow, clock, logs } = setUp();
  logMany(logs, 0, 50);
  await clock.advance(10_000);
  expect(slow.batches).toHaveLength(1);
});

it("logs what a record was at that time, and what is no JSON with the reason", async () => {
  const { slow, clock, logs } = setUp();
  const user = { name: "ann" };
  logs.log("came", { user });
  user.name = "bob";
  logs.log("odd", { size: 1n });
  const thrown: unknown = Object.create(null);
  const toJSON = (): never => {
    throw thrown; // of which no text can be made
  };
  logs.log("odder", { user: { toJSON } });
  logs.log("mute", { toJSON: () => undefined });
  await clock.advance(1_000);
  const records = slow.batches[0]?.records.map((record) => JSON.parse(record) as unknown);
  expect(records).toMatchObject([
    { message: "came", user: { name: "ann" } },
    { message: "odd", unloggable: expect.stringContaining("BigInt") as unknown },
    { message: "odder", unloggable: "object" },
    { message: "mute" },
  ]);
});

it("goes on with the next batch though who is told of the loss throws", async () => {
  const { slow, clock, logs } = setUp({
    onLost() {
      throw new Error("nobody hears of it");
    },
  });
  logMany(logs, 0, 1);
  await clock.advance(1_000);
  slow.answer(new Error("given up"));
  logMany(logs, 1, 2);
  await clock.advance(1_000);
  expect(slow.batches.at(-1)).toMatchObject({ number: 2, lost: 1 });
  slow.answer();
  await clock.advance(0);
  expect(logs.stats()).toEqual({ waiting: 0, shipped: 1, lost: 1 });
});

it("ships all it has when it is stopped, without waiting for a batch to fill", async () => {
  const { slow, clock, logs } = setUp();
  logMany(logs, 0, 13);
  const stopped = logs.stop();
  for (const _ of [1, 2]) {
    await clock.advance(0);
    slow.answer();
  }
  await stopped;
  expect(logs.stats()).toEqual({ waiting: 0, shipped: 13, lost: 0 });
  expect(clock.timers).toBe(0);
  logs.log("too late");
  expect(logs.stats().lost).toBe(1);
});

it("gives up what is left when the time to stop in is over, and counts all of it", async () => {
  const { slow, clock, logs } = setUp();
  logMany(logs, 0, 35);
  await clock.advance(0);
  const stopped = logs.stop();
  await clock.advance(60_000);
  expect(slow.batches).toHaveLength(1);
  logs.abort(new Error("no more time"));
  await stopped;
  expect([logs.stats(), slow.batches.length]).toEqual([{ waiting: 0, shipped: 0, lost: 35 }, 1]);
});

it("tries a real collector that is busy again, until it is there", async () => {
  const { collector, logs } = await setUpReal();
  collector.mood = "busy";
  logMany(logs, 0, 3);
  await collector.until(() => collector.requests === 3);
  collector.mood = "fine";
  await logs.stop();
  expect([collector.messages, logs.stats().shipped]).toEqual([["#0", "#1", "#2"], 3]);
});

it("is not counted twice by a collector whose answer was lost", async () => {
  const { collector, logs } = await setUpReal();
  collector.mood = "deaf";
  logMany(logs, 0, 3);
  await collector.until(() => collector.requests === 2);
  collector.mood = "fine";
  await logs.stop();
  expect(collector.requests).toBeGreaterThanOrEqual(3);
  expect([collector.messages, logs.stats().shipped]).toEqual([["#0", "#1", "#2"], 3]);
});

it("gives up an attempt at a collector that hangs, and a batch that has taken too long", async () => {
  const clock = new VirtualClock();
  const lost = Promise.withResolvers<number>();
  const { collector, logs } = await setUpReal({
    attemptTimeoutMs: 20,
    giveUpMs: 200,
    onLost: (_, records) => lost.resolve(records),
    clock,
  });
  collector.mood = "hung";
  logMany(logs, 0, 3);
  await clock.advance(5);
  for (const requests of [1, 2, 3]) {
    await collector.until(() => collector.requests === requests);
    await clock.advance(30); // an attempt, and the wait for the next
  }
  await clock.advance(200);
  expect(await lost.promise).toBe(3);
});

it("does not try again what the collector refuses for good", async () => {
  const lost = Promise.withResolvers<number>();
  const { collector, logs } = await setUpReal({ onLost: (_, records) => lost.resolve(records) });
  collector.mood = "strict";
  logMany(logs, 0, 3);
  expect([await lost.promise, collector.requests]).toEqual([3, 1]);
});

it("never keeps a request waiting, however long the collector hangs, and ships at the end what it still has", async () => {
  const { collector, logs } = await setUpReal({ capacity: 20, maxBatch: 10 });
  const { url, stopping } = await startService(logs);
  cleanups.push(() => stopping.stopNow());
  collector.mood = "hung";
  for (let count = 0; count < 10; count += 1) await fetch(`${url}/early`);
  await collector.until(() => collector.requests > 0);
  const before = collector.messages.length;
  const answers = await Promise.all(Array.from({ length: 100 }, () => fetch(`${url}/late`)));
  expect(answers.every(({ ok }) => ok)).toBe(true);
  expect(collector.messages).toHaveLength(before); // all were answered, and the collector has answered nothing
  collector.mood = "fine";
  const { clean, targets } = await stopping.stop();
  expect([clean, targets.map(({ name }) => name)]).toEqual([true, ["http", "logs"]]);
  expect(collector.messages.length + logs.stats().lost).toBe(110);
  expect(collector.lost).toBe(logs.stats().lost);
});

it("ends in time, though the collector is dead, and says what was not shipped", async () => {
  const { collector, logs } = await setUpReal({ maxBatch: 10 });
  const clock = new VirtualClock();
  const { stopping } = await startService(logs, { flushMs: 50, clock });
  collector.mood = "hung";
  logMany(logs, 0, 30);
  void stopping.stop();
  while (stopping.stats().phase !== "over") await clock.advance(10);
  const { clean, targets } = stopping.report();
  expect([clean, targets[1]]).toMatchObject([false, { name: "logs", outcome: "inside", tookMs: 50 }]);
  await logs.stop();
  expect(logs.stats()).toEqual({ waiting: 0, shipped: 0, lost: 30 });
});
