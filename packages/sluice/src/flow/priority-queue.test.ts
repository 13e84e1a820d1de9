import * as fc from "fast-check";
import { expect, it } from "vitest";
import { namedEntries } from "../internal/names.ts";
import { type AbortSubject, abortCases } from "../testing/abort-suite.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { PriorityQueue } from "./priority-queue.ts";

const subjects: readonly AbortSubject[] = [
  {
    name: "PriorityQueue.put",
    open(clock) {
      const queue = new PriorityQueue<number>(1, { clock });
      queue.offer(0);
      return {
        call: (options) => queue.put(1, { ...options, priority: 3 }),
        satisfy: () => queue.poll(),
        state: () => ({ size: queue.size, waiting: queue.stats().waitingProducers }),
        giveBack: () => queue.poll(),
      };
    },
  },
];

for (const subject of subjects) for (const { title, run } of abortCases(subject)) it(title, run);

it("gives the highest priority first, and among equals what came first", async () => {
  const queue = new PriorityQueue<string>(9);
  for (const [item, priority] of [
    ["low", 0],
    ["mid", 1],
    ["high", 2],
    ["mid 2", 1],
    ["high 2", 2],
  ] as const)
    await queue.put(item, { priority });
  expect([queue.peek(), queue.pollBatch(9)]).toEqual(["high", ["high", "high 2", "mid", "mid 2", "low"]]);
});

it("evicts from among more priorities than a call can have arguments", () => {
  const queue = new PriorityQueue<number>(150_000, { whenFull: "drop-oldest" });
  for (let priority = 0; priority < 150_000; priority += 1) queue.offer(priority, { priority });
  expect([queue.offer(150_000, { priority: 150_000 }), queue.offer(-1, { priority: 0 }), queue.size]).toEqual([
    true,
    false,
    150_000,
  ]);
  expect(queue.remove(0)).toBe(false);
});

it("refuses a priorityOf that is no function", () => {
  expect(() => new PriorityQueue(1, { priorityOf: 5 as never })).toThrow("priorityOf must be a function, got number");
});

it("takes the priority of an item from priorityOf, unless its put says otherwise", () => {
  const queue = new PriorityQueue<number>(9, { priorityOf: (item) => item % 10 });
  for (const item of [11, 25, 3]) queue.offer(item);
  queue.offer(40, { priority: 100 });
  expect(queue.pollBatch(9)).toEqual([40, 25, 3, 11]);
});

it("holds items of one priority with any number of others between, in the order of coming", () => {
  const queue = new PriorityQueue<number>(1_000, { agingMs: Infinity });
  for (let item = 0; item < 1_000; item += 1) queue.offer(item, { priority: item % 7 });
  const got = queue.pollBatch(1_000);
  expect(got).toEqual(got.toSorted((a, b) => (b % 7) - (a % 7) || a - b));
});

it("starves nobody: an item of low priority gains on those that come later", async () => {
  for (const [agingMs, expected] of [
    [100, true],
    [Infinity, false],
  ] as const) {
    const clock = new VirtualClock();
    const queue = new PriorityQueue<string>(10, { clock, agingMs });
    queue.offer("low", { priority: 0 });
    const got: (string | undefined)[] = [];
    for (let second = 0; second < 20; second += 1) {
      queue.offer("high", { priority: 5 });
      queue.offer("high", { priority: 5 });
      got.push(queue.poll());
      await clock.advance(60);
      if (queue.size > 5) queue.poll();
    }
    expect(got.includes("low")).toBe(expected);
  }
});

it("lets an item gain one step of priority for each agingMs, and no more", async () => {
  const clock = new VirtualClock();
  const queue = new PriorityQueue<string>(10, { clock });
  queue.offer("old", { priority: 0 });
  await clock.advance(1_999);
  queue.offer("new", { priority: 2 });
  expect(queue.peek()).toBe("new");
  queue.poll();
  await clock.advance(1);
  queue.offer("newer", { priority: 2 });
  expect(queue.peek()).toBe("newer"); // a tie: the higher one of now
  queue.poll();
  await clock.advance(1);
  queue.offer("newest", { priority: 2 });
  expect(queue.peek()).toBe("old");
});

it("lets in the waiting producer of the highest priority first", async () => {
  const queue = new PriorityQueue<string>(1);
  queue.offer("in");
  const puts = [queue.put("low", { priority: 0 }), queue.put("high", { priority: 1 })];
  expect([queue.poll(), queue.poll(), queue.poll()]).toEqual(["in", "high", "low"]);
  expect(await Promise.all(puts)).toEqual([true, true]);
  const handOff = new PriorityQueue<string>(0);
  void handOff.put("low", { priority: 0 });
  void handOff.put("high", { priority: 1 });
  expect(handOff.pollBatch(9)).toEqual(["high", "low"]);
});

it("evicts the oldest of the lowest priority, and drops what is lower still", async () => {
  const lost: string[] = [];
  const queue = new PriorityQueue<string>(2, { whenFull: "drop-oldest", onUndelivered: (item) => lost.push(item) });
  await queue.put("a", { priority: 1 });
  await queue.put("b", { priority: 1 });
  expect(await queue.put("c", { priority: 0 })).toBe(false);
  expect(await queue.put("d", { priority: 1 })).toBe(true);
  expect(await queue.put("e", { priority: 2 })).toBe(true);
  expect([lost, queue.pollBatch(9)]).toEqual([
    ["a", "b"],
    ["e", "d"],
  ]);
  expect(queue.stats()).toMatchObject({ accepted: 4, dropped: 3, undelivered: 2, taken: 2 });
});

it("removes an item wherever it stands, and lets in who waits", async () => {
  const queue = new PriorityQueue<string>(4, { agingMs: Infinity });
  for (const item of ["a", "b", "c"]) queue.offer(item, { priority: 1 });
  queue.offer("b", { priority: 7 });
  const waiting = queue.put("d", { priority: 1 });
  expect([queue.remove("c"), queue.remove("nowhere"), await waiting]).toEqual([true, false, true]);
  expect([queue.remove("b"), queue.offer("e", { priority: 1 })]).toEqual([true, true]);
  expect([queue.remove("a"), queue.pollBatch(9), queue.remove("a")]).toEqual([true, ["b", "d", "e"], false]);
  expect(queue.stats()).toMatchObject({ accepted: 6, taken: 3, undelivered: 3, size: 0 });
});

it("tells the age of the oldest item, whatever its priority", async () => {
  const clock = new VirtualClock();
  const queue = new PriorityQueue<string>(9, { clock, name: "mail", agingMs: Infinity });
  queue.offer("old", { priority: 0 });
  await clock.advance(10);
  queue.offer("new", { priority: 1 });
  await clock.advance(5);
  expect(queue.oldestAgeMs).toBe(15);
  queue.pollBatch(9);
  expect(queue.oldestAgeMs).toBe(0);
  expect(namedEntries().find(({ name }) => name === "mail")?.kind).toBe("priority-queue");
});

it("loses nothing to a bad priority or a priorityOf that throws", async () => {
  const queue = new PriorityQueue<number>(1, {
    priorityOf(item) {
      if (item < 0) throw new Error("no priority");
      return item;
    },
  });
  queue.offer(1);
  const place = new PriorityQueue<number>(1).tryReserve();
  for (const priority of [Number.NaN, Infinity]) {
    await expect(queue.put(2, { priority })).rejects.toThrow("priority must be finite");
    expect(() => queue.offer(2, { priority })).toThrow(RangeError);
    expect(() => place?.put(2, { priority })).toThrow(RangeError);
  }
  await expect(queue.put(-1)).rejects.toThrow("no priority");
  await expect(queue.put(2, { priority: "1" as unknown as number })).rejects.toThrow(TypeError);
  expect(() => new PriorityQueue(1, { agingMs: -1 })).toThrow("agingMs must be >= 0, got -1");
  expect([place?.put(3), queue.size, queue.stats().waitingProducers]).toEqual([true, 1, 0]);
});

it("leaves in the order of a sorted list under any plan", () => {
  const act = fc.record({ priority: fc.integer({ min: -2, max: 2 }), takes: fc.nat(2), passMs: fc.nat(1_500) });
  const plans = fc.asyncProperty(fc.constantFrom(0, 500, Infinity), fc.array(act, { maxLength: 40 }), play);
  return fc.assert(plans, { numRuns: 300 });
});

interface Act {
  readonly priority: number;
  readonly takes: number;
  readonly passMs: number;
}

async function play(agingMs: number, plan: readonly Act[]): Promise<void> {
  const clock = new VirtualClock();
  const queue = new PriorityQueue<number>(100, { clock, agingMs });
  const model: { readonly id: number; readonly priority: number; readonly at: number }[] = [];
  for (const [id, { priority, takes, passMs }] of plan.entries()) {
    queue.offer(id, { priority });
    model.push({ id, priority, at: clock.now() });
    model.sort((a, b) => {
      const byPriority = b.priority - a.priority;
      const gain = agingMs === Infinity ? byPriority : byPriority * agingMs + a.at - b.at;
      return gain || byPriority || a.id - b.id;
    });
    await clock.advance(passMs);
    expect(queue.pollBatch(takes + 1).slice(0, takes)).toEqual(
      model
        .splice(0, takes + 1)
        .slice(0, takes)
        .map((each) => each.id),
    );
  }
}
