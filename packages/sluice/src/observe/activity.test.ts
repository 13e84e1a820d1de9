import { expect, it } from "vitest";
import { Semaphore } from "../sync/semaphore.ts";
import { turn } from "../testing/turn.ts";
import { type Activity, currentActivity, isWithin } from "./activity.ts";
import { activity, enable } from "./enable.ts";

it("knows who descends from whom, also across what is awaited", async () => {
  using _ = enable();
  expect(currentActivity()).toBeUndefined();
  const [outer, inner, other] = await activity(async () => {
    const own = currentActivity() as Activity;
    await turn();
    expect(currentActivity()).toBe(own);
    const children = await Promise.all([1, 2].map(() => activity(async () => currentActivity() as Activity)));
    return [own, ...children] as [Activity, Activity, Activity];
  });
  expect([isWithin(inner, outer), isWithin(outer, outer), isWithin(outer, inner), isWithin(inner, other)]).toEqual([
    true,
    true,
    false,
    false,
  ]);
});

it("leaves no chain behind where each run starts the next", async () => {
  using _ = enable({ stacks: false });
  const sem = new Semaphore(1);
  const depths: number[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const step = async (left: number): Promise<void> => {
    await sem.run(() => {
      let depth = 0;
      for (let each = currentActivity(); each !== undefined; each = each.parent) depth += 1;
      depths.push(depth);
      void turn().then(() => (left === 0 ? resolve() : step(left - 1)));
    });
  };
  await step(50);
  await promise;
  expect(Math.max(...depths)).toBe(1);
});
