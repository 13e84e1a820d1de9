import { expect, it, vi } from "vitest";
import { HttpStatusError, RateLimitedError } from "../errors.ts";
import { namedEntries } from "../internal/names.ts";
import { turn } from "../testing/turn.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { AdaptiveRate, type AdaptiveRateOptions } from "./adaptive-rate.ts";
import { RateLimiter } from "./rate-limiter.ts";

interface Scene {
  readonly clock: VirtualClock;
  readonly limiter: RateLimiter;
  readonly rate: AdaptiveRate;
}

function open(options: Partial<AdaptiveRateOptions> = {}): Scene {
  const clock = new VirtualClock();
  const limiter = new RateLimiter({ count: 100, perMs: 1_000, burst: 10, clock });
  return { clock, limiter, rate: new AdaptiveRate(limiter, { perMs: 1_000, maxCount: 100, clock, ...options }) };
}

const tooMany = new HttpStatusError(new Response(null, { status: 429 }), 2_000);

it("J30: waits as long as a 429 says, and goes on at half the rate", async () => {
  const { clock, limiter, rate } = open();
  const failed = expect(rate.run(() => Promise.reject(tooMany))).rejects.toBe(tooMany);
  await failed;
  expect([rate.count, limiter.tryTake(), limiter.retryAfterMs()]).toEqual([50, false, 2_000]);
  await clock.advance(2_000);
  expect(limiter.tryTake(10)).toBe(true);
  expect(limiter.retryAfterMs()).toBeCloseTo(20, 3);
});

it("takes the 429s that were on their way together for one, but waits for the longest", async () => {
  const { clock, limiter, rate } = open();
  for (const ms of [10, 500, 100]) rate.limited(ms);
  expect([rate.count, limiter.retryAfterMs()]).toEqual([50, 500]);
  await clock.advance(10_000);
  rate.limited();
  expect([rate.count, rate.stats()]).toEqual([25, { count: 25, decreases: 2, increases: 0 }]);
});

it("comes back step by step while calls succeed, up to where it was and no further", async () => {
  const { clock, limiter, rate } = open({ increase: 20 });
  rate.limited();
  const counts: number[] = [];
  for (let quiet = 0; quiet < 4; quiet += 1) {
    await clock.advance(9_999);
    await rate.run(() => "fine");
    const early = rate.count;
    await clock.advance(1);
    await rate.run(() => "fine");
    counts.push(early, rate.count);
  }
  expect(counts).toEqual([50, 70, 70, 90, 90, 100, 100, 100]);
  expect(rate.stats()).toEqual({ count: 100, decreases: 1, increases: 3 });
  await clock.advance(1_000);
  limiter.tryTake(10);
  expect(limiter.retryAfterMs()).toBeCloseTo(10, 3);
});

it("falls no lower than minCount, so that it can find out when it is better", async () => {
  const { clock, rate } = open({ minCount: 30, decrease: 0 });
  rate.limited();
  await clock.advance(10_000);
  rate.limited();
  expect(rate.stats()).toEqual({ count: 30, decreases: 1, increases: 0 });
});

it("learns from a value as well as from an error, and from failures of other kinds nothing", async () => {
  const { clock, rate } = open();
  expect(await rate.run(() => ({ status: 429 }))).toEqual({ status: 429 });
  expect(rate.count).toBe(50);
  await clock.advance(20_000);
  for (const error of [new HttpStatusError(new Response(null, { status: 500 })), new RateLimitedError(5), null, "no"])
    await expect(rate.run(() => Promise.reject(error as Error))).rejects.toBe(error);
  expect(rate.count).toBe(50);
  const own = open({ retryAfterMs: (outcome) => (outcome === "slow down" ? 70 : undefined) });
  await own.rate.run(() => "slow down");
  expect([own.rate.count, own.limiter.retryAfterMs()]).toEqual([50, 70]);
});

it.each([Number.NaN, -5, Infinity, "soon"])(
  "takes %s, which is no time to wait, for a limit without one",
  async (told) => {
    const { limiter, rate } = open({ retryAfterMs: () => told as number });
    await expect(rate.run(() => "value")).resolves.toBe("value");
    expect([rate.count, limiter.retryAfterMs()]).toEqual([50, 0]);
    const failure = new Error("of the call");
    await expect(rate.run(() => Promise.reject(failure))).rejects.toBe(failure);
    const other = open();
    await expect(other.rate.run(() => ({ status: 429, retryAfterMs: told }))).resolves.toMatchObject({ status: 429 });
    expect([other.rate.count, other.limiter.retryAfterMs()]).toEqual([50, 0]);
  },
);

it("lets a retryAfterMs that throws take nobody's outcome away: its error is an unhandled rejection", async () => {
  const unhandled = vi.fn<(error: unknown) => void>();
  process.on("unhandledRejection", unhandled);
  const thrown = new Error("of the header");
  const { rate } = open({
    retryAfterMs() {
      throw thrown;
    },
  });
  await expect(rate.run(() => "value")).resolves.toBe("value");
  await expect(rate.run(() => Promise.reject(tooMany))).rejects.toBe(tooMany);
  await turn();
  process.off("unhandledRejection", unhandled);
  expect([rate.count, unhandled.mock.calls.map(([error]) => error)]).toEqual([100, [thrown, thrown]]);
});

it("learns nothing from a call that its own limiter turned away", async () => {
  const { limiter, rate } = open();
  limiter.tryTake(10);
  await expect(rate.run(() => 1, { timeoutMs: 1 })).rejects.toThrow(RateLimitedError);
  expect(rate.stats()).toEqual({ count: 100, decreases: 0, increases: 0 });
});

it("refuses options that would not work", () => {
  for (const bad of [
    { perMs: 0 },
    { maxCount: 0 },
    { minCount: 101 },
    { minCount: 0 },
    { decrease: 1 },
    { decrease: -1 },
    { increase: 0 },
    { recoverMs: 0 },
  ])
    expect(() => open(bad)).toThrow(RangeError);
  const { rate } = open({ name: "provider" });
  expect(
    namedEntries()
      .find(({ name }) => name === "provider")
      ?.target.deref(),
  ).toBe(rate);
});
