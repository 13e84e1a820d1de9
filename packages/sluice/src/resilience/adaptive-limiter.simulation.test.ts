// A server whose latency is flat up to a knee and rises in proportion from there, in virtual time.
import { expect, it } from "vitest";
import { sleep } from "../clock/sleep.ts";
import { OverloadedError } from "../errors.ts";
import { seededRandom } from "../testing/seeded-random.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { aimd } from "./adaptive-limiter-aimd.ts";
import { gradient } from "./adaptive-limiter-gradient.ts";
import type { AdaptiveLimiterOptions, LimitStrategy } from "./adaptive-limiter-options.ts";
import { AdaptiveLimiter } from "./adaptive-limiter.ts";
import { codel } from "./codel.ts";

class Server {
  readonly #clock: VirtualClock;
  readonly #random = seededRandom(4);
  baseMs = 10;
  knee = 40;
  /** Of the latency: half of it either way. */
  noise = 0.2;
  running = 0;
  served = 0;
  totalMs = 0;

  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }

  async call(): Promise<void> {
    this.running += 1;
    const ms = this.baseMs * Math.max(1, this.running / this.knee) * (1 + this.noise * (this.#random() - 0.5));
    await sleep(ms, { clock: this.#clock });
    this.running -= 1;
    this.served += 1;
    this.totalMs += ms;
  }
}

class World {
  readonly clock = new VirtualClock();
  readonly server: Server = new Server(this.clock);
  readonly limiter: AdaptiveLimiter;
  #callers = 0;

  constructor(strategy: LimitStrategy, options: AdaptiveLimiterOptions = {}) {
    this.limiter = new AdaptiveLimiter(strategy, { clock: this.clock, ...options });
  }

  /** So many that each call again as soon as they have their answer. */
  async callers(count: number): Promise<void> {
    this.#callers = count;
    for (let id = 0; id < count; id += 1) void this.#goOn(id);
    await this.clock.advance(0);
  }

  async #goOn(id: number): Promise<void> {
    while (id < this.#callers) await this.limiter.run(() => this.server.call());
  }

  /** The limit at each tenth of a second of so many seconds. */
  async watch(seconds: number): Promise<number[]> {
    const limits: number[] = [];
    for (let tick = 0; tick < seconds * 10; tick += 1) {
      await this.clock.advance(100);
      limits.push(this.limiter.concurrency);
    }
    return limits;
  }

  /** Calls per second, and how long one took, over so many seconds. */
  async measure(seconds: number): Promise<{ rate: number; latencyMs: number; limit: number }> {
    const { served, totalMs } = this.server;
    const limits = (await this.watch(seconds)).toSorted((a, b) => a - b);
    const count = this.server.served - served;
    const limit = limits[limits.length >> 1] ?? Number.NaN;
    return { rate: count / seconds, latencyMs: (this.server.totalMs - totalMs) / count, limit };
  }
}

it("F03.4: gradient finds the knee, where the server gives all it can and calls take little longer than at rest", async () => {
  const world = new World(gradient());
  await world.callers(120);
  await world.watch(15);
  const { rate, latencyMs, limit } = await world.measure(10);
  const predicted = 1.5 * 40 + Math.sqrt(68);
  expect(Math.abs(limit - predicted) / predicted).toBeLessThan(0.05);
  expect(rate).toBeGreaterThan(0.98 * 4_000); // of knee / base
  expect(latencyMs).toBeLessThan(18);
});

it("gradient comes within a third of the knee where latency is steady enough for a low tolerance", async () => {
  const world = new World(gradient({ tolerance: 1.1 }));
  await world.callers(120);
  await world.watch(15);
  const { rate, limit } = await world.measure(10);
  expect(limit).toBeGreaterThan(40);
  expect(limit).toBeLessThan(40 * 1.33);
  expect(rate).toBeGreaterThan(0.98 * 4_000);
});

it("gradient doesn't drift under load that lasts, as it would by an average over the long run", async () => {
  const world = new World(gradient());
  await world.callers(120);
  await world.watch(15);
  const [early, late] = [await world.measure(10), (await world.watch(60), await world.measure(10))];
  expect(Math.abs(late.limit - early.limit)).toBeLessThanOrEqual(2);
});

it.each([
  ["gradient", gradient(), 15, 30],
  ["aimd", aimd({ maxLatencyMs: 15 }), 10, 20],
])(
  "F03.4: %s follows a server that loses most of its capacity, and comes back with it",
  async (_, strategy, least, most) => {
    const world = new World(strategy);
    await world.callers(120);
    await world.watch(15);
    const before = await world.measure(10);
    world.server.knee = 10;
    await world.watch(5);
    const weak = await world.measure(10);
    expect(weak.limit).toBeGreaterThanOrEqual(least - 5);
    expect(weak.limit).toBeLessThanOrEqual(most);
    expect(weak.rate).toBeGreaterThan(0.95 * 1_000);
    world.server.knee = 40;
    await world.watch(10);
    const after = await world.measure(10);
    expect(Math.abs(after.limit - before.limit) / before.limit).toBeLessThan(0.1);
  },
);

it("gradient learns that a server has become slower for good, and gives it as much as before", async () => {
  const world = new World(gradient());
  await world.callers(120);
  await world.watch(15);
  world.server.baseMs = 30;
  await world.watch(20);
  const { rate, limit } = await world.measure(10);
  expect(limit).toBeGreaterThan(60);
  expect(rate).toBeGreaterThan(0.95 * (40 / 0.03));
});

it.each([
  ["gradient", gradient()],
  ["aimd", aimd({ maxLatencyMs: 15 })],
])(
  "%s takes a spike for what it is: half a second of slow calls costs less than half of the limit",
  async (_, strategy) => {
    const world = new World(strategy);
    await world.callers(120);
    await world.watch(13);
    const before = world.limiter.concurrency;
    world.server.baseMs = 1_000;
    await world.clock.advance(5);
    world.server.baseMs = 10;
    const least = Math.min(...(await world.watch(3)));
    expect(least).toBeGreaterThan(before / 2);
    await world.watch(5);
    expect(Math.abs(world.limiter.concurrency - before) / before).toBeLessThan(0.15);
  },
);

it.each([
  ["gradient", gradient()],
  ["aimd", aimd({ maxLatencyMs: 15 })],
])("%s leaves the limit where it is while there is little to do, and doesn't drift away", async (_, strategy) => {
  const world = new World(strategy);
  await world.callers(5);
  expect(new Set(await world.watch(60))).toEqual(new Set([20]));
  expect(world.server.served).toBeGreaterThan(5_000);
});

it("gradient halves the limit at most for a few windows in ten seconds, to see what calls take at rest", async () => {
  const world = new World(gradient());
  await world.callers(120);
  await world.watch(30);
  const limits = await world.watch(30);
  const low = limits.filter((limit) => limit < 50).length;
  expect(low).toBeGreaterThan(0);
  expect(low / limits.length).toBeLessThan(0.04);
});

it("stays within its bounds whatever the server does", async () => {
  const world = new World(gradient(), { initialConcurrency: 10, minConcurrency: 8, maxConcurrency: 30 });
  await world.callers(120);
  expect(Math.max(...(await world.watch(10)))).toBe(30);
  world.server.knee = 1;
  expect(Math.min(...(await world.watch(30)))).toBe(8);
});

it("F10.3: answers an overload of twice what the server can do within the target, and works at full rate meanwhile", async () => {
  const world = new World(gradient(), { discipline: codel({ targetMs: 20, intervalMs: 100 }) });
  const waits: number[] = [];
  let refused = 0;
  const call = async (): Promise<void> => {
    const from = world.clock.now();
    await world.limiter.run(() => {
      waits.push(world.clock.now() - from);
      return world.server.call();
    });
  };
  await world.clock.advance(0);
  for (let ms = 0; ms < 5_000; ms += 1) {
    for (let n = 0; n < 8; n += 1)
      void call().catch((error: unknown) => (refused += Number(error instanceof OverloadedError)));
    await world.clock.advance(1);
  }
  await world.clock.advance(1_000);
  const late = waits.slice(waits.length >> 1);
  expect(Math.max(...late)).toBeLessThanOrEqual(20);
  expect(world.server.served + refused).toBe(40_000);
  expect(world.server.served).toBeGreaterThan(0.85 * 20_000);
  expect(world.limiter.stats()).toMatchObject({ running: 0, waiting: 0, expired: refused, timedOut: 0 });
});
