import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { TimeoutError } from "../errors.ts";
import { type AbortSubject, abortCases } from "../testing/abort-suite.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Cache } from "./cache.ts";
import { freshness } from "./freshness.ts";

const subject: AbortSubject = {
  name: "Cache.drain",
  open(clock) {
    const answers: (() => void)[] = [];
    const cache = new Cache(() => new Promise<void>((resolve) => answers.push(resolve)), { maxEntries: 10, clock });
    void cache.load("key");
    return {
      call: (options) => cache.drain(options),
      satisfy: () => answers.pop()?.(),
      state: () => ({ loading: cache.stats().loading }),
    };
  },
};
for (const { title, run } of abortCases(subject)) it(title, run);

it("waits for loads in the background too, for those that nobody waits for, and for those begun meanwhile", async () => {
  const clock = new VirtualClock();
  const answers: (() => void)[] = [];
  const cache = new Cache(() => new Promise<number>((resolve) => answers.push(() => resolve(1))), {
    maxEntries: 10,
    ttlMs: 100,
    clock,
    freshness: freshness({ staleMs: 1_000 }),
  });
  await cache.drain();
  cache.set("a", 1);
  await clock.advance(100);
  await cache.load("a"); // is renewed
  void cache.load("b");
  cache.delete("b");
  let isDrained = false;
  void cache.drain().then(() => (isDrained = true));
  const steps: boolean[] = [];
  for (const step of [() => answers[0]?.(), () => void cache.load("c"), () => answers[1]?.(), () => answers[2]?.()]) {
    step();
    await turn();
    steps.push(isDrained);
  }
  expect(steps).toEqual([false, false, false, true]);
  await cache.drain({ timeoutMs: 0 });
});

it("is drained by a load that fails", async () => {
  const answer = Promise.withResolvers<number>();
  const cache = new Cache(() => answer.promise, { maxEntries: 10 });
  const load = cache.load("a");
  await expect(cache.drain({ timeoutMs: 0 })).rejects.toBeInstanceOf(TimeoutError);
  const drained = cache.drain();
  answer.reject(new Error("no"));
  await expect(load).rejects.toThrow("no");
  await expect(drained).resolves.toBeUndefined();
});
