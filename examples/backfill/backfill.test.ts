import { Agent } from "node:http";
import { afterEach, expect, it } from "vitest";
import { sleep } from "sluice";
import { seededRandom, VirtualClock } from "sluice/testing";
import { backfill, HttpError, sendTo } from "./backfill.ts";
import { Provider, type ProviderOptions } from "./provider.ts";

const provided: { provider: Provider; agent: Agent }[] = [];

afterEach(async () => {
  for (const { provider, agent } of provided.splice(0)) {
    agent.destroy();
    await provider.stop();
  }
});

async function provide(options: ProviderOptions): Promise<{ provider: Provider; send: ReturnType<typeof sendTo> }> {
  const provider = await Provider.start(options);
  const agent = new Agent({ keepAlive: true });
  provided.push({ provider, agent });
  return { provider, send: sendTo(provider.url, agent) };
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

/** A service whose answers take 200 ms. */
class Slow {
  readonly clock = new VirtualClock();
  readonly asked: number[] = [];
  running = 0;
  peak = 0;
  aborted = 0;
  fails: (item: number) => Error | undefined = () => undefined;

  readonly send = async (item: number, signal: AbortSignal): Promise<void> => {
    this.asked.push(item);
    this.running += 1;
    this.peak = Math.max(this.peak, this.running);
    try {
      await sleep(200, { signal, clock: this.clock });
      const error = this.fails(item);
      if (error !== undefined) throw error;
    } catch (error) {
      if (signal.aborted) this.aborted += 1;
      throw error;
    } finally {
      this.running -= 1;
    }
  };
}

it("sends 20 000 items of 200 ms each, 20 at a time, in 200 s", async () => {
  const slow = new Slow();
  const report = backfill(numbers(20_000), slow.send, { concurrency: 20, clock: slow.clock });
  await slow.clock.advance(199_999);
  expect(slow.asked).toHaveLength(20_000);
  await slow.clock.advance(1);
  expect(await report).toEqual({ sent: 20_000, next: 20_000 });
  expect(slow.peak).toBe(20);
});

it("stops at the first error: starts nothing more, aborts what runs, and says where to go on", async () => {
  const slow = new Slow();
  slow.fails = (item) => (item === 105 ? new HttpError(422) : undefined);
  const report = backfill(numbers(1_000), slow.send, { concurrency: 10, clock: slow.clock });
  await slow.clock.advance(60_000);
  const { sent, next, error } = await report;
  expect(error).toMatchObject({ status: 422 });
  expect([slow.running, Math.max(...slow.asked)]).toEqual([0, 118]); // four that came after it were done in the same instant, and as many begun
  expect([sent, next]).toEqual([109, 105]);
  expect(slow.aborted).toBe(9);
});

it("sends again what was under way when it stopped, and nothing before", async () => {
  const slow = new Slow();
  slow.fails = (item) => (item === 7 ? new HttpError(500) : undefined);
  const first = backfill(numbers(20), slow.send, { concurrency: 4, clock: slow.clock, random: seededRandom(1) });
  await slow.clock.advance(60_000);
  const { next } = await first;
  expect(next).toBeLessThanOrEqual(7);
  const before = slow.asked.length;
  slow.fails = () => undefined;
  const second = backfill(numbers(20), slow.send, { concurrency: 4, clock: slow.clock, from: next });
  await slow.clock.advance(60_000);
  expect(await second).toEqual({ sent: 20 - next, next: 20 });
  expect(slow.asked.slice(before).toSorted((a, b) => a - b)).toEqual(numbers(20).slice(next));
});

it("goes on from what is done without a gap, though later items are done too", async () => {
  const slow = new Slow();
  const done = new Set<number>();
  const send = async (item: number, signal: AbortSignal): Promise<void> => {
    await sleep(item === 3 ? 1_000 : 100, { signal, clock: slow.clock });
    if (item === 12) throw new HttpError(422);
    done.add(item);
  };
  const report = backfill(numbers(20), send, { concurrency: 4, clock: slow.clock });
  await slow.clock.advance(5_000);
  expect((await report).next).toBe(3);
  expect(done.has(4)).toBe(true);
});

it("tries again what may pass, but a service that is down is not asked four times for each item", async () => {
  const slow = new Slow();
  const firsts = new Set<number>();
  slow.fails = (item) => {
    if (item % 20 !== 0 || firsts.has(item)) return undefined;
    firsts.add(item);
    return new HttpError(503);
  };
  const report = backfill(numbers(200), slow.send, { concurrency: 10, clock: slow.clock, random: seededRandom(1) });
  await slow.clock.advance(120_000);
  expect(await report).toEqual({ sent: 200, next: 200 });
  expect(slow.asked).toHaveLength(210);
  slow.asked.length = 0;
  slow.fails = () => new HttpError(503);
  const down = backfill(numbers(1_000), slow.send, { concurrency: 50, clock: slow.clock, random: seededRandom(1) });
  await slow.clock.advance(120_000);
  expect((await down).error).toMatchObject({ status: 503 });
  expect(slow.asked.length).toBeLessThanOrEqual(50 + 10);
});

it("ends at once when it is told to, in the midst of a wait too, with no call left", async () => {
  const slow = new Slow();
  slow.fails = (item) => (item === 0 ? new HttpError(503) : undefined);
  const stop = new AbortController();
  const report = backfill(numbers(50), slow.send, {
    concurrency: 2,
    clock: slow.clock,
    signal: stop.signal,
    random: () => 1,
  });
  await slow.clock.advance(210);
  stop.abort(new Error("stopped"));
  expect(await report).toMatchObject({ error: { message: "stopped" }, next: 0 });
  const asked = slow.asked.length;
  await slow.clock.advance(60_000);
  expect([slow.asked.length, slow.running, slow.clock.timers]).toEqual([asked, 0, 0]);
});

it("tells how far it has come each thousand items", async () => {
  const slow = new Slow();
  const told: number[] = [];
  const report = backfill(numbers(2_500), slow.send, {
    concurrency: 500,
    clock: slow.clock,
    onProgress: (done) => void told.push(done),
  });
  await slow.clock.advance(10_000);
  await report;
  expect(told).toEqual([1_000, 2_000, 2_500]);
});

it("holds to the limit of a real service, which turns nobody away, and mends its passing failures", async () => {
  const { provider, send } = await provide({ maxConcurrent: 8, flaky: (item) => item % 50 === 0 });
  expect(await backfill(numbers(500), send, { concurrency: 8 })).toEqual({ sent: 500, next: 500 });
  expect(provider.counts).toMatchObject({ served: 500, limited: 0, unavailable: 10 });
});

it("J01: all at once, a real service turns away all but those it takes at a time", async () => {
  const open = Promise.withResolvers<void>();
  const { provider, send } = await provide({ maxConcurrent: 8, until: open.promise });
  const { signal } = new AbortController();
  let turnedAway = 0;
  const calls = numbers(300).map(async (item) => {
    try {
      return await send(item, signal);
    } catch (error) {
      turnedAway += 1;
      if (turnedAway === 292) open.resolve();
      throw error;
    }
  });
  await Promise.allSettled(calls);
  expect([turnedAway, provider.counts.limited, provider.counts.served]).toEqual([292, 292, 8]);
});
