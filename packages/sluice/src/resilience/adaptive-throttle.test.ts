import { expect, it } from "vitest";
import { OverloadedError } from "../errors.ts";
import { named } from "../observe/named.ts";
import { abortCases, type AbortSubject } from "../testing/abort-suite.ts";
import { seededRandom } from "../testing/seeded-random.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { AdaptiveThrottle } from "./adaptive-throttle.ts";
import { compose } from "./compose.ts";

class Boom extends Error {}

function overloaded(): never {
  throw Object.assign(new Boom(), { status: 503 });
}

/** A dependency that takes every so manieth call. */
class Server {
  asked = 0;
  oneIn = 1;

  readonly call = (): number => ((this.asked += 1) % this.oneIn === 0 ? 1 : overloaded());
}

async function ask(throttle: AdaptiveThrottle, fn: () => unknown, calls: number): Promise<number> {
  let refused = 0;
  for (let n = 0; n < calls; n += 1)
    await throttle.run(fn).catch((error: unknown) => (refused += Number(error instanceof OverloadedError)));
  return refused;
}

it("follows the formula: what was asked, less twice what was taken, as a share of what was asked", async () => {
  const throttle = new AdaptiveThrottle({ random: () => 0.999, clock: new VirtualClock() });
  await ask(throttle, () => 1, 30);
  expect(throttle.share).toBe(0);
  await ask(throttle, overloaded, 30);
  expect(throttle.share).toBe(0);
  await ask(throttle, overloaded, 39);
  expect(throttle.stats()).toEqual({ asked: 99, taken: 30, share: (99 - 60) / 100, running: 0, rejected: 0 });
});

it("turns away about as many as the dependency would have, and few while it takes most", async () => {
  const clock = new VirtualClock();
  const throttle = new AdaptiveThrottle({ random: seededRandom(5), clock });
  const server = new Server();
  expect(await ask(throttle, server.call, 1_000)).toBe(0);
  server.oneIn = 4;
  await clock.advance(130_000);
  await ask(throttle, server.call, 2_000);
  server.asked = 0;
  const refused = await ask(throttle, server.call, 10_000);
  expect(server.asked).toBe(10_000 - refused);
  expect(refused / 10_000).toBeGreaterThan(0.4); // of 3 in 4 that it would have refused, it has to refuse half as many
});

it("lets all through again once the dependency takes them", async () => {
  const clock = new VirtualClock();
  const throttle = new AdaptiveThrottle({ random: seededRandom(5), windowMs: 12_000, clock });
  await ask(throttle, overloaded, 500);
  expect(throttle.share).toBe(0.9);
  const server = new Server();
  for (let second = 0; second < 30; second += 1) {
    await ask(throttle, server.call, 50);
    await clock.advance(1_000);
  }
  expect(throttle.share).toBe(0);
  expect(await ask(throttle, server.call, 100)).toBe(0);
});

it("forgets what is older than the window, whoever comes meanwhile or doesn't", async () => {
  const clock = new VirtualClock();
  const throttle = new AdaptiveThrottle({ random: () => 1, windowMs: 1_200, clock });
  await ask(throttle, overloaded, 10);
  await clock.advance(600);
  await ask(throttle, overloaded, 5);
  expect(throttle.stats().asked).toBe(15);
  await clock.advance(600);
  expect(throttle.stats().asked).toBe(5);
  await clock.advance(100_000);
  expect(throttle.stats()).toMatchObject({ asked: 0, taken: 0, share: 0 });
});

it("doesn't count calls that go on: that they have no answer yet says nothing", async () => {
  const throttle = new AdaptiveThrottle({ random: () => 0 });
  const { promise, resolve } = Promise.withResolvers<void>();
  const runs = Array.from({ length: 50 }, () => throttle.run(() => promise));
  expect(throttle.stats()).toMatchObject({ asked: 0, running: 50, share: 0 });
  resolve();
  await Promise.all(runs);
  expect(throttle.stats()).toMatchObject({ asked: 50, taken: 50, running: 0 });
});

it("takes what fails for other reasons for taken, and counts once if classify throws", async () => {
  const throttle = new AdaptiveThrottle({ random: () => 1 });
  await expect(throttle.run(() => Promise.reject(new Boom()))).rejects.toThrow(Boom);
  expect(throttle.stats()).toMatchObject({ asked: 1, taken: 1 });
  const broken = new AdaptiveThrottle({
    classify: () => {
      throw new Boom();
    },
  });
  await expect(broken.run(() => 1)).rejects.toThrow(Boom);
  expect(broken.stats()).toMatchObject({ running: 0, asked: 0 });
});

it("says so by an error with a code and a hint, in its stats, and within other policies", async () => {
  const throttle = new AdaptiveThrottle({ random: () => 0, windowMs: 12_000, name: "feed" });
  const policy = compose(throttle);
  await policy.run(overloaded).catch(() => {});
  await expect(policy.run(() => 1)).rejects.toMatchObject({ code: "OVERLOADED", retryAfterMs: 1_000 });
  expect(throttle.stats()).toMatchObject({ asked: 2, taken: 0, rejected: 1, running: 0 });
  expect(named().find(({ name }) => name === "feed")?.kind).toBe("adaptive-throttle");
});

it.each([
  [{ multiplier: 0.5 }, "multiplier must be finite and >= 1, got 0.5"],
  [{ windowMs: 0 }, "windowMs must be finite and >= 1, got 0"],
  [{ maxShare: 1.1 }, "maxShare must be <= 1, got 1.1"],
  [{ classify: 5 as never }, "classify must be a function, got number"],
  [{ random: 5 as never }, "random must be a function, got number"],
])("refuses %j", (options, why) => {
  expect(() => new AdaptiveThrottle(options)).toThrow(why);
});

const subject: AbortSubject = {
  name: "AdaptiveThrottle.run",
  lacks: { waiting: "it passes a call or turns it away", timeoutMs: "it never waits" },
  open() {
    const throttle = new AdaptiveThrottle();
    const running: (() => void)[] = [];
    return {
      call: (options) => throttle.run(() => new Promise<void>((resolve) => void running.push(resolve)), options),
      satisfy: () => running.shift()?.(),
      state: () => ({}),
    };
  },
};

for (const { title, run } of abortCases(subject)) it(title, run);
