import { expect, it } from "vitest";
import { RateLimitedError } from "../errors.ts";
import { abortCases } from "../testing/abort-suite.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { KeyedRateLimiter } from "./keyed-rate-limiter.ts";
import { RateLimiter } from "./rate-limiter.ts";
import type { RateRule } from "./rate-rule.ts";
import { takeAll, tryTakeAll } from "./take-all.ts";

const cases = abortCases({
  name: "takeAll",
  open(clock) {
    let left = 0;
    const rule: RateRule = {
      maxCost: 1,
      turnAt: (_, now) => (left > 0 ? now : now + 1),
      take: () => void (left -= 1),
      giveBack: () => void (left += 1),
    };
    const charges = [
      { limiter: new RateLimiter({ rule, clock }) },
      { limiter: new RateLimiter({ count: 1_000, perMs: 1, burst: 10_000, clock }) },
    ];
    return {
      call: (options) => takeAll(charges, { ...options, clock }),
      satisfy() {
        left += 1;
        return clock.advance(1);
      },
      state: () => ({ left }),
      giveBack: () => void (left += 1),
    };
  },
});
for (const { title, run } of cases) it(title, run);

it("C121: charges no limit for what another refuses", async () => {
  const clock = new VirtualClock();
  const users = new KeyedRateLimiter({ count: 30, perMs: 60_000, burst: 30, clock });
  const endpoint = new RateLimiter({ count: 5, perMs: 60_000, burst: 5, clock });
  endpoint.tryTake(5);
  const charges = [{ limiter: users, key: "ann" }, { limiter: endpoint }];
  for (let call = 0; call < 10; call += 1) expect(tryTakeAll(charges)).toBe(false);
  await expect(takeAll(charges, { timeoutMs: 0, clock })).rejects.toMatchObject({ code: "TIMEOUT" });
  await expect(takeAll(charges, { timeoutMs: 11_999, clock })).rejects.toMatchObject({ retryAfterMs: 12_000 });
  expect(users.retryAfterMs("ann", 30)).toBe(0);
  await clock.advance(12_000);
  expect([tryTakeAll(charges), tryTakeAll(charges)]).toEqual([true, false]);
  expect(users.retryAfterMs("ann", 30)).toBe(2_000);
});

it("takes at one instant when all have what is asked for, and holds nothing until then", async () => {
  const clock = new VirtualClock();
  const users = new KeyedRateLimiter({ count: 1, perMs: 1_000, clock });
  const endpoint = new RateLimiter({ count: 10, perMs: 1_000, burst: 1, clock });
  users.tryTake("slow");
  const log: string[] = [];
  const call = (key: string): Promise<unknown> =>
    takeAll([{ limiter: users, key }, { limiter: endpoint }], { clock }).then(() =>
      log.push(`${key} at ${clock.now()}`),
    );
  const calls = ["slow", "a", "b", "c"].map(call);
  await clock.advance(1_500);
  await Promise.all(calls);
  expect(log).toEqual(["a at 0", "b at 100", "c at 200", "slow at 1000"]);
  expect(clock.timers).toBe(0);
});

it("adds up what is charged to one bucket twice", () => {
  const clock = new VirtualClock();
  const users = new KeyedRateLimiter({ count: 3, perMs: 1_000, burst: 3, clock });
  const twice = [
    { limiter: users, key: "ann", cost: 2 },
    { limiter: users, key: "bob" },
    { limiter: users, key: "ann" },
  ];
  expect([tryTakeAll(twice), tryTakeAll(twice), users.tryTake("bob", 2)]).toEqual([true, false, true]);
  const all = new RateLimiter({ count: 3, perMs: 1_000, burst: 3, clock });
  expect(() =>
    tryTakeAll([
      { limiter: all, cost: 2 },
      { limiter: all, cost: 2 },
    ]),
  ).toThrow(RangeError);
  expect(() => tryTakeAll([{ limiter: all }, { limiter: all, cost: -1 }])).toThrow(RangeError);
  expect(all.retryAfterMs(3)).toBe(0);
});

it("overtakes nobody who waits at one of them, also when the turn of that one has come", async () => {
  const clock = new VirtualClock();
  const users = new KeyedRateLimiter({ count: 1, perMs: 100, burst: 2, clock });
  const endpoint = new RateLimiter({ count: 1, perMs: 100, burst: 2, clock });
  users.tryTake("ann", 2);
  endpoint.tryTake(2);
  const waiters = [users.take("ann"), endpoint.take()];
  let tried: boolean | undefined;
  clock.setTimer(99, { onTimer: () => (tried = tryTakeAll([{ limiter: users, key: "ann" }, { limiter: endpoint }])) });
  await clock.advance(100);
  await Promise.all(waiters);
  expect(tried).toBe(false);
  await clock.advance(100);
  expect(tryTakeAll([{ limiter: users, key: "ann" }, { limiter: endpoint }])).toBe(true);
});

it("takes also in the turn in which the last who waited for a key has got theirs", async () => {
  const clock = new VirtualClock();
  const users = new KeyedRateLimiter({ count: 1, perMs: 100, burst: 2, clock });
  users.tryTake("ann", 2);
  void users.take("ann");
  let tried: boolean | undefined;
  clock.setTimer(100, {
    onTimer() {
      users.setRate({ count: 1, perMs: 100, burst: 3 });
      users.setRate({ count: 1_000, perMs: 100, burst: 3 });
      tried = users.retryAfterMs("ann") > 0 || tryTakeAll([{ limiter: users, key: "ann" }]);
    },
  });
  await clock.advance(100);
  expect(tried).toBe(true);
});

it("is turned away at once by a cost that can never be, and takes nothing", async () => {
  const limiter = new RateLimiter({ count: 1, perMs: 1, burst: 2, clock: new VirtualClock() });
  await expect(takeAll([{ limiter, cost: 3 }])).rejects.toThrow(RangeError);
  expect(RateLimitedError.name).toBe("RateLimitedError");
  expect(await takeAll([])).toBe(undefined);
});
