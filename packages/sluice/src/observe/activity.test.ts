import { expect, it } from "vitest";
import { Limiter } from "../flow/limiter.ts";
import { TaskGroup } from "../scope/task-group.ts";
import { Semaphore } from "../sync/semaphore.ts";
import { turn } from "../testing/turn.ts";
import { type Activity, currentActivity } from "./activity.ts";
import { activity, enable } from "./enable.ts";

function isWithin(one: Activity, other: Activity): boolean {
  let each: Activity | undefined = one;
  while (each !== undefined && each !== other) each = each.parent;
  return each !== undefined;
}

function depthOf(one: Activity | undefined): number {
  let depth = 0;
  for (let each = one; each !== undefined; each = each.parent) depth += 1;
  return depth;
}

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

it("leaves no chain behind where each starts the next before it ends, be it a round, a child or a call", async () => {
  using _ = enable({ stacks: false });
  const group = new TaskGroup();
  const limit = new Limiter(2, { stallMs: Infinity });
  const starts: readonly ((fn: () => Promise<void>) => Promise<unknown>)[] = [
    (fn) => activity(fn),
    (fn) => group.run(fn),
    (fn) => limit.run(fn),
  ];
  for (const start of starts) {
    const depths: number[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const round = async (left: number): Promise<void> => {
      await turn();
      depths.push(depthOf(currentActivity()));
      if (left === 0) resolve();
      else void start(() => round(left - 1));
    };
    void start(() => round(50));
    await promise;
    expect(Math.max(...depths)).toBe(2); // the next is there while this one ends
  }
});

it("keeps those above that go on, though one between them has ended", async () => {
  using _ = enable();
  const { promise, resolve: end } = Promise.withResolvers<void>();
  const found: Activity[] = [];
  const outer = activity(async () => {
    found.push(currentActivity() as Activity);
    await activity(async () => {
      void activity(async () => {
        await turn();
        activity(() => found.push(currentActivity() as Activity));
      });
    });
    await promise;
  });
  await turn();
  await turn();
  const [top, bottom] = found as [Activity, Activity];
  expect([isWithin(bottom, top), depthOf(bottom)]).toEqual([true, 3]);
  end();
  await outer;
});

it("leaves no chain behind where each run starts the next", async () => {
  using _ = enable({ stacks: false });
  const sem = new Semaphore(1);
  const depths: number[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const step = async (left: number): Promise<void> => {
    await sem.run(() => {
      depths.push(depthOf(currentActivity()));
      void turn().then(() => (left === 0 ? resolve() : step(left - 1)));
    });
  };
  await step(50);
  await promise;
  expect(Math.max(...depths)).toBe(1);
});
