import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import type { Clock } from "../clock/clock.ts";
import { RateLimitedError } from "../errors.ts";
import { namedEntries } from "../internal/names.ts";
import { type AbortSubject, abortCases } from "../testing/abort-suite.ts";
import { unhandledIn } from "../testing/unhandled.stage.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { KeyedRateLimiter } from "./keyed-rate-limiter.ts";
import { RateLimiter } from "./rate-limiter.ts";

const subjects: readonly AbortSubject[] = (["take", "run"] as const).map((verb) => ({
  name: `KeyedRateLimiter.${verb}`,
  open(virtual) {
    let frozenAt = 0; // timers fire, but time is late, so that there is some to change one's mind in
    const clock: Clock = {
      now: () => frozenAt,
      wallNow: () => virtual.wallNow(),
      setTimer: (delayMs, task, options) => virtual.setTimer(delayMs, task, options),
      track: (work) => work,
    };
    const limiter = new KeyedRateLimiter({ count: 10_000, perMs: 1_000, clock });
    limiter.tryTake("key");
    return {
      call: (options) => (verb === "take" ? limiter.take("key", options) : limiter.run("key", () => {}, options)),
      satisfy() {
        frozenAt += 0.11;
        return virtual.advance(2);
      },
      state: () => ({ waiting: limiter.stats().waiting }),
    };
  },
}));
for (const subject of subjects) for (const { title, run } of abortCases(subject)) it(title, run);

it("N04: lets one user be flooded without any other user's noticing", async () => {
  const clock = new VirtualClock();
  const limiter = new KeyedRateLimiter({ count: 5, perMs: 60_000, burst: 5, clock });
  const flooded = Array.from({ length: 100 }, () => limiter.tryTake("flooded"));
  expect(flooded.filter(Boolean).length).toBe(5);
  expect(Array.from({ length: 5 }, () => limiter.tryTake("other"))).toEqual([true, true, true, true, true]);
  await clock.advance(12_000);
  expect([limiter.tryTake("flooded"), limiter.tryTake("flooded")]).toEqual([true, false]);
  expect(limiter.stats()).toMatchObject({ keys: 2, granted: 11, rejected: 96, waiting: 0 });
});

it("takes numbers for keys, which are others than those written in digits", () => {
  const limiter = new KeyedRateLimiter({ count: 1, perMs: 1_000, clock: new VirtualClock() });
  const keys = [7, "7", -7, 0, "", 2 ** 40 + 7, Number.MAX_SAFE_INTEGER];
  expect(keys.map((key) => limiter.tryTake(key))).toEqual(keys.map(() => true));
  expect(keys.map((key) => limiter.tryTake(key))).toEqual(keys.map(() => false));
});

it("serves each key in the order of arrival, whatever goes on at others", async () => {
  const clock = new VirtualClock();
  const limiter = new KeyedRateLimiter({ count: 10, perMs: 1_000, burst: 4, clock });
  const log: string[] = [];
  limiter.tryTake("a", 4);
  for (const [name, cost] of Object.entries({ big: 4, small: 1, last: 2 }))
    void limiter.take("a", { cost }).then(() => log.push(`${name} at ${clock.now()}`));
  void limiter.take("b").then(() => log.push(`b at ${clock.now()}`));
  await clock.advance(0);
  expect([limiter.tryTake("a"), limiter.stats().waiting, limiter.retryAfterMs("a")]).toEqual([false, 3, 800]);
  await clock.advance(1_000);
  expect(log).toEqual(["b at 0", "big at 400", "small at 500", "last at 700"]);
  expect(clock.timers).toBe(0);
});

it("keeps what those who waited have taken, and their counts, when nobody waits any more", async () => {
  const clock = new VirtualClock();
  const limiter = new KeyedRateLimiter({ count: 10, perMs: 1_000, maxWaiting: 1, clock });
  const call = new AbortController();
  limiter.tryTake("a");
  const gone = limiter.take("a", { signal: call.signal }).catch(() => {});
  await expect(limiter.take("a")).rejects.toThrow(RateLimitedError);
  call.abort();
  await gone;
  await expect(limiter.take("a", { timeoutMs: 0 })).rejects.toMatchObject({ code: "TIMEOUT" });
  await expect(limiter.take("a", { timeoutMs: 50 })).rejects.toMatchObject({ retryAfterMs: 100 });
  const waiter = limiter.take("a");
  await clock.advance(100);
  await waiter;
  expect([limiter.tryTake("a"), limiter.retryAfterMs("a")]).toEqual([false, 100]);
  const counts = { granted: 2, rejected: 3, timedOut: 1, aborted: 1 };
  expect(limiter.stats()).toMatchObject({ ...counts, waiting: 0, keys: 1, evicted: 0 });
});

it("gives the tokens back, to the next in line, when the signal aborts between grant and call", async () => {
  const clock = new VirtualClock();
  const limiter = new KeyedRateLimiter({ count: 1, perMs: 100, clock });
  const log: string[] = [];
  for (const others of [1, 0]) {
    const call = new AbortController();
    limiter.tryTake("a");
    const first = limiter.run("a", () => log.push("never"), { signal: call.signal });
    if (others > 0) void limiter.run("a", () => log.push(`second at ${clock.now()}`));
    clock.setTimer(100, { onTimer: () => call.abort("late") }); // fires after the limiter's own timer, in the same turn
    const refused = expect(first).rejects.toBe("late");
    await clock.advance(100);
    await refused;
    expect(limiter.tryTake("a")).toBe(others === 0);
    await clock.advance(100);
  }
  expect([log, clock.timers, limiter.stats().granted]).toEqual([["second at 100"], 0, 4]);
});

it("lets nobody start for a key that is paused, and for all others as before", async () => {
  const clock = new VirtualClock();
  const limiter = new KeyedRateLimiter({ count: 10, perMs: 1_000, burst: 3, clock });
  limiter.pauseFor("a", 500);
  expect([limiter.tryTake("a"), limiter.tryTake("b"), limiter.retryAfterMs("a")]).toEqual([false, true, 500]);
  const call = new AbortController();
  const waits = [limiter.take("a"), limiter.take("a", { signal: call.signal }).catch(() => {})];
  limiter.pauseFor("a", 1_000);
  call.abort();
  await clock.advance(999);
  expect(limiter.stats().waiting).toBe(1);
  await clock.advance(1);
  await Promise.all(waits);
  expect([limiter.tryTake("a"), limiter.retryAfterMs("a")]).toEqual([false, 100]);
});

it("C119: changes the rate of all keys without debt or gift, also of those who wait", async () => {
  const clock = new VirtualClock();
  const limiter = new KeyedRateLimiter({ count: 1_000, perMs: 1_000, burst: 1_000, clock });
  limiter.tryTake("drained", 1_000);
  limiter.tryTake("half", 500);
  limiter.tryTake("awaited", 1_000);
  const waiter = limiter.take("awaited").then(() => clock.now());
  limiter.setRate({ count: 10, perMs: 1_000, burst: 10 });
  expect(["drained", "half", "new"].map((key) => Math.round(limiter.retryAfterMs(key, 1)))).toEqual([100, 0, 0]);
  expect([limiter.tryTake("half", 10), limiter.tryTake("half")]).toEqual([true, false]);
  await clock.advance(150);
  expect(Math.round(await waiter)).toBe(100);
  limiter.setRate({ count: 10, perMs: 1_000, burst: undefined }); // the burst stays
  expect(() => limiter.tryTake("new", 11)).toThrow("cost must be <= 10, got 11");
  const again = limiter.take("awaited", { cost: 10 });
  await clock.advance(1_000);
  await again;
});

it("lets who comes after a change of rate wait by the new one", async () => {
  const clock = new VirtualClock();
  const limiter = new KeyedRateLimiter({ count: 1, perMs: 1_000, burst: 1, clock });
  limiter.setRate({ count: 10, perMs: 1_000 });
  expect(limiter.tryTake("a")).toBe(true);
  const from = clock.now();
  const waits = [1, 2].map(() => limiter.take("a").then(() => Math.round(clock.now() - from)));
  await clock.advance(2_000);
  expect(await Promise.all(waits)).toEqual([100, 200]);
});

it("leaves the rejection of a wait that nobody looks at to the runtime", async () => {
  const limiter = new KeyedRateLimiter({ count: 1, perMs: 1_000, clock: new VirtualClock() });
  limiter.tryTake("a");
  const [call, reason] = [new AbortController(), new Error("nobody looks")];
  const unhandled = await unhandledIn(async () => {
    void limiter.take("a", { signal: call.signal });
    limiter.take("a", { signal: call.signal }).catch(() => {});
    call.abort(reason);
  });
  expect(unhandled).toEqual([reason]);
});

it("forgets the keys whose bucket is full again while others are used, by no timer", async () => {
  const clock = new VirtualClock();
  const limiter = new KeyedRateLimiter({ count: 1, perMs: 1_000, clock });
  for (let user = 0; user < 1_000; user += 1) limiter.tryTake(`user-${user}`);
  expect([limiter.stats().keys, clock.timers]).toEqual([1_000, 0]);
  await clock.advance(1_000);
  for (let call = 0; call <= 2_000; call += 1) limiter.tryTake("steady");
  expect(limiter.stats()).toMatchObject({ keys: 1, evicted: 0 });
});

it("never forgets a key whose bucket is not full, or that somebody waits for", async () => {
  const clock = new VirtualClock();
  const limiter = new KeyedRateLimiter({ count: 1, perMs: 1_000, clock });
  limiter.tryTake("spent");
  limiter.tryTake("awaited");
  const waiter = limiter.take("awaited");
  await clock.advance(999);
  for (let call = 0; call < 100; call += 1) limiter.tryTake(`user-${call}`);
  expect(limiter.tryTake("spent")).toBe(false);
  await clock.advance(1);
  await waiter;
  expect(limiter.tryTake("awaited")).toBe(false);
});

it("remembers maxKeys at most, and lets the fullest go first", () => {
  const clock = new VirtualClock();
  const limiter = new KeyedRateLimiter({ count: 10, perMs: 1_000, burst: 10, maxKeys: 3, clock });
  limiter.tryTake("drained", 10);
  limiter.tryTake("touched", 1);
  limiter.tryTake("half", 5);
  limiter.tryTake("new", 2);
  expect(limiter.stats()).toMatchObject({ keys: 3, evicted: 1 });
  expect(["drained", "half", "touched", "new"].map((key) => limiter.retryAfterMs(key, 10))).toEqual([
    1_000, 500, 0, 200,
  ]);
});

it("makes room by a key that is full again, if it finds one, and evicts none then", async () => {
  const clock = new VirtualClock();
  const limiter = new KeyedRateLimiter({ count: 10, perMs: 1_000, burst: 10, maxKeys: 8, clock });
  limiter.tryTake("old");
  await clock.advance(100);
  for (let user = 0; user < 8; user += 1) limiter.tryTake(user, 10);
  expect(limiter.stats()).toMatchObject({ keys: 8, evicted: 0 });
});

it("keeps the keys that somebody waits for, beyond maxKeys if need be", async () => {
  const clock = new VirtualClock();
  const limiter = new KeyedRateLimiter({ count: 1, perMs: 100, maxKeys: 2, clock });
  const waiters = ["a", "b", "c"].map((key) => {
    limiter.tryTake(key);
    return limiter.take(key);
  });
  expect(limiter.stats()).toMatchObject({ keys: 3, evicted: 0, waiting: 3 });
  await clock.advance(100);
  await Promise.all(waiters);
  expect(limiter.stats()).toMatchObject({ granted: 6, keys: 2, evicted: 1 });
});

it("keeps 200,000 keys apart", () => {
  const limiter = new KeyedRateLimiter({ count: 1, perMs: 1_000_000, clock: new VirtualClock() });
  let taken = 0;
  for (let user = 0; user < 200_000; user += 1) if (limiter.tryTake(`user-${user}`)) taken += 1;
  expect(taken).toBe(200_000);
  for (let user = 0; user < 200_000; user += 97) expect(limiter.tryTake(`user-${user}`)).toBe(false);
  expect(limiter.stats().keys).toBe(200_000);
});

it("does what a limiter of its own for each key does, under any plan", () => {
  const step = fc.record({
    key: fc.constantFrom<string | number>("a", "b", 1, 2),
    verb: fc.constantFrom("tryTake", "take", "abort", "run"),
    cost: fc.integer({ min: 1, max: 3 }),
    afterMs: fc.constantFrom(0, 0, 3, 10, 25),
  });
  const plans = fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (plan) => {
    const clock = new VirtualClock();
    const limit = { count: 1, perMs: 10, burst: 3, clock };
    const keyed = new KeyedRateLimiter(limit);
    const own = new Map<string | number, RateLimiter>();
    const logs: [string[], string[]] = [[], []];
    let calls = [new AbortController(), new AbortController()] as const;
    for (const [id, { key, verb, cost, afterMs }] of plan.entries()) {
      const single = own.get(key) ?? new RateLimiter(limit);
      own.set(key, single);
      const note =
        (log: string[], what: string): (() => void) =>
        () =>
          void log.push(`${id} ${what} at ${clock.now()}`);
      if (verb === "abort") {
        for (const call of calls) call.abort();
        calls = [new AbortController(), new AbortController()];
      } else if (verb === "tryTake") {
        logs[0].push(String(keyed.tryTake(key, cost)));
        logs[1].push(String(single.tryTake(cost)));
      } else {
        const options = calls.map(({ signal }) => ({ cost, signal, timeoutMs: 45 })) as [object, object];
        const [left, right] =
          verb === "take"
            ? [keyed.take(key, options[0]), single.take(options[1])]
            : [keyed.run(key, nothing, options[0]), single.run(nothing, options[1])];
        left.then(note(logs[0], "granted"), note(logs[0], "refused"));
        right.then(note(logs[1], "granted"), note(logs[1], "refused"));
      }
      await clock.advance(afterMs);
      await turn();
      expect(logs[0].toSorted()).toEqual(logs[1].toSorted());
      expect(keyed.retryAfterMs(key, cost)).toBe(single.retryAfterMs(cost));
      expect(calls.map(({ signal }) => getEventListeners(signal, "abort").length <= 1)).toEqual([true, true]);
    }
    await clock.advance(10_000);
    expect([keyed.stats().waiting, clock.timers]).toEqual([0, 0]);
    const sum = (of: "granted" | "rejected" | "timedOut" | "aborted"): number =>
      [...own.values()].reduce((total, each) => total + each.stats()[of], 0);
    const { granted, rejected, timedOut, aborted } = keyed.stats();
    expect([granted, rejected, timedOut, aborted]).toEqual([
      sum("granted"),
      sum("rejected"),
      sum("timedOut"),
      sum("aborted"),
    ]);
  });
  return fc.assert(plans, { numRuns: 300 });
});

it("refuses bad options, keys and costs, and rejects where it promises", async () => {
  const good = { count: 5, perMs: 1_000, burst: 2 };
  for (const bad of [{ count: 0 }, { perMs: 0 }, { burst: 0 }, { maxKeys: 0 }, { maxWaiting: -1 }])
    expect(() => new KeyedRateLimiter({ ...good, ...bad })).toThrow(RangeError);
  const limiter = new KeyedRateLimiter({ ...good, name: "users", clock: new VirtualClock() });
  for (const key of [undefined, null, 1.5, Number.NaN, {}] as unknown as string[]) {
    expect(() => limiter.tryTake(key)).toThrow("key must be a string or an integer");
    expect(() => limiter.pauseFor(key, 1)).toThrow(TypeError);
    await expect(limiter.take(key)).rejects.toThrow(TypeError);
    await expect(limiter.run(key, () => 1)).rejects.toThrow(TypeError);
  }
  for (const cost of [0, 3, 1.5]) await expect(limiter.take("a", { cost })).rejects.toThrow(RangeError);
  expect(() => limiter.pauseFor("a", Infinity)).toThrow(RangeError);
  expect(() => limiter.setRate({ count: 0, perMs: 1 })).toThrow(RangeError);
  expect(limiter.stats()).toMatchObject({ keys: 0, granted: 0 });
  expect(namedEntries().find(({ name }) => name === "users")?.kind).toBe("keyed-rate-limiter");
});

function nothing(): void {}

it("makes room by a key that is full again and evicts none, also where no tokens are taken", async () => {
  const clock = new VirtualClock();
  const limiter = new KeyedRateLimiter({ count: 1, perMs: 1_000, maxKeys: 1, clock });
  limiter.tryTake("a");
  await clock.advance(1_000);
  limiter.pauseFor("b", 10);
  expect(limiter.stats()).toMatchObject({ keys: 1, evicted: 0 });
  limiter.pauseFor("c", 10);
  expect(limiter.stats()).toMatchObject({ keys: 1, evicted: 1 });
});

it("keeps no line of a key for which a call was turned away at once", async () => {
  const clock = new VirtualClock();
  const limiter = new KeyedRateLimiter({ count: 1, perMs: 1_000, maxKeys: 1, maxWaiting: 0, clock });
  for (const key of ["a", "b", "c"]) {
    limiter.tryTake(key);
    await expect(limiter.take(key)).rejects.toBeInstanceOf(Error);
  }
  expect(limiter.stats()).toMatchObject({ keys: 1, waiting: 0 });
});

it("keeps a longer pause of a key when a shorter one comes", () => {
  const limiter = new KeyedRateLimiter({ count: 1, perMs: 100, clock: new VirtualClock() });
  limiter.pauseFor("a", 1_000);
  limiter.pauseFor("a", 10);
  expect(limiter.retryAfterMs("a")).toBe(1_000);
});
