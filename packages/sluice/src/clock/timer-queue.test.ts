import { setImmediate as turn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import type { TimerTask } from "./clock.ts";
import { TimerQueue } from "./timer-queue.ts";

const DAY_MS = 86_400_000;
const YEAR_MS = 366 * DAY_MS;

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

interface Named extends TimerTask {
  readonly id: number;
}

const named = (id: number): Named => ({ id, onTimer: () => {} });

/** All that is due by `now`, in order. */
function drain(queue: TimerQueue, now: number): number[] {
  const ids: number[] = [];
  for (let task = queue.popDue(now); task !== undefined; task = queue.popDue(now)) ids.push((task as Named).id);
  return ids;
}

type Step = readonly ["insert", afterMs: number] | readonly ["cancel" | "advance" | "pop", by: number];

// Around the borders of the levels, within one bucket, and years ahead.
const delay = fc.oneof(
  fc.nat(3),
  fc.nat(70),
  fc.nat(5_000),
  fc.constantFrom(
    0.5,
    63,
    64,
    65,
    4_095,
    4_096,
    262_144,
    2 ** 24 - 1,
    2 ** 30 - 1,
    2 ** 30,
    2 ** 30 + 1,
    2 ** 31,
    2 ** 32,
  ),
  fc.constantFrom(DAY_MS, 30 * DAY_MS, YEAR_MS, 40 * YEAR_MS, Infinity),
);
const step = fc.oneof(
  { weight: 4, arbitrary: delay.map((by): Step => ["insert", by]) },
  { weight: 2, arbitrary: fc.nat().map((by): Step => ["cancel", by]) },
  { weight: 1, arbitrary: delay.map((by): Step => ["advance", by === Infinity ? 1 : by]) },
  { weight: 1, arbitrary: delay.map((by): Step => ["pop", by === Infinity ? 1 : by]) },
);

it("gives back what a sorted array would under any plan of inserts, cancels and pops, from any time on", () => {
  const starts = fc.oneof(fc.nat(100), fc.constantFrom(2 ** 30 - 3, 2 ** 31 - 1, 2 ** 40 + 17, Date.UTC(2026, 10, 29)));
  return fc.assert(fc.property(starts, fc.array(step, { maxLength: 60 }), play), { numRuns: 2_000 });
});

function play(start: number, plan: readonly Step[]): void {
  const queue = new TimerQueue();
  const model: { readonly dueAt: number; readonly id: number; readonly handle: number }[] = [];
  const over: number[] = [];
  let now = start;
  const first = (): (typeof model)[number] | undefined => model.toSorted((a, b) => a.dueAt - b.dueAt || a.id - b.id)[0];
  const popFirst = (): number | undefined => {
    const due = first();
    if (due === undefined || due.dueAt > now) return undefined;
    over.push(model.splice(model.indexOf(due), 1)[0]?.handle ?? -1);
    return due.id;
  };
  for (const [id, [verb, by]] of plan.entries()) {
    if (verb === "insert") {
      model.push({ dueAt: Math.ceil(now + by), id, handle: queue.insert(now + by, named(id)) });
    } else if (verb === "cancel") {
      const [gone] = model.splice(by % (model.length + 1), 1);
      if (gone !== undefined) expect(queue.cancel(gone.handle)).toBe(true);
      if (gone !== undefined) over.push(gone.handle);
    } else {
      now += by;
      const expected: number[] = [];
      for (let popped = popFirst(); popped !== undefined; popped = popFirst()) {
        expected.push(popped);
        if (verb === "pop") break;
      }
      const popped =
        verb === "pop"
          ? [queue.popDue(now)].flatMap((task) => (task === undefined ? [] : [(task as Named).id]))
          : drain(queue, now);
      expect(popped).toEqual(expected);
    }
    expect(queue.size).toBe(model.length);
    expect(queue.nextDueAt()).toBeLessThanOrEqual(first()?.dueAt ?? Infinity);
    for (const handle of over) expect(queue.cancel(handle)).toBe(false);
  }
  expect(drain(queue, 1e15)).toEqual(
    model
      .filter(({ dueAt }) => dueAt < 1e15)
      .toSorted((a, b) => a.dueAt - b.dueAt || a.id - b.id)
      .map(({ id }) => id),
  );
}

it("C088: is exact for delays beyond 2^31 ms and for those of years, and never early", () => {
  for (const delayMs of [2 ** 31 - 1, 2 ** 31, 2 ** 32 + 1, 30 * DAY_MS, 100 * YEAR_MS, 2 ** 52]) {
    const queue = new TimerQueue();
    queue.insert(0.25 + delayMs, named(1));
    const dueAt = Math.ceil(0.25 + delayMs);
    expect(queue.nextDueAt()).toBe(dueAt);
    expect(queue.popDue(dueAt - 1)).toBeUndefined();
    expect(drain(queue, dueAt)).toEqual([1]);
  }
});

it("fires what is past already with the next to fall due, in the order it was set", () => {
  const queue = new TimerQueue();
  queue.insert(5_000, named(1));
  expect(drain(queue, 5_000)).toEqual([1]);
  for (const [id, dueAt] of [4_999, 5_000, 17, 0].entries()) queue.insert(dueAt, named(id));
  expect([queue.nextDueAt(), drain(queue, 4_999), drain(queue, 5_000)]).toEqual([5_000, [], [0, 1, 2, 3]]);
});

it("never comes to Infinity", () => {
  const queue = new TimerQueue();
  const handle = queue.insert(Infinity, named(1));
  expect([queue.nextDueAt(), queue.popDue(Number.MAX_VALUE), queue.cancel(handle)]).toEqual([
    Infinity,
    undefined,
    true,
  ]);
});

it("refuses what is no instant, and keeps nothing of it", () => {
  const queue = new TimerQueue();
  expect(() => queue.insert(Number.NaN, named(1))).toThrow("dueAt must be a number, got NaN");
  expect([queue.size, queue.nextDueAt()]).toEqual([0, Infinity]);
});

it.each([-1, 0, 5, 320, 321, 2 ** 25, 2 ** 40 + 5, 1.5, Number.NaN, Infinity])(
  "cancels nothing by %d, which it never gave out",
  (handle) => {
    const queue = new TimerQueue();
    for (let id = 0; id < 3; id += 1) queue.cancel(queue.insert(10, named(id))); // the slot has moved on
    queue.insert(10, named(3));
    expect([queue.cancel(handle), queue.size, drain(queue, 10)]).toEqual([false, 1, [3]]);
  },
);

it("never mistakes a handle for that of a later timer, be it after a burst that grew and went", () => {
  const queue = new TimerQueue();
  const old: number[] = [];
  for (const count of [3_000, 10, 5_000, 1, 2_000]) {
    const handles = Array.from({ length: count }, (_, id) => queue.insert(id, named(id)));
    expect(new Set([...old, ...handles]).size).toBe(old.length + count);
    for (const handle of old) if (queue.cancel(handle)) expect.fail(`${handle} was used again`);
    for (const handle of handles.toReversed()) queue.cancel(handle);
    old.push(...handles);
  }
});

it("keeps order while bursts of thousands come and go", () => {
  const queue = new TimerQueue();
  let now = 0;
  for (let burst = 0; burst < 20; burst += 1) {
    const timers = Array.from({ length: 3_000 }, (_, id) => ({
      id,
      dueAt: now + ((Math.imul(id + burst, 2_654_435_761) >>> 0) % 9_999),
    }));
    const handles = timers.map(({ id, dueAt }) => queue.insert(dueAt, named(id)));
    const kept = timers.filter(({ id }) => id % 7 === 0 || !queue.cancel(handles[id] ?? -1));
    now += 10_000;
    expect(drain(queue, now)).toEqual(kept.toSorted((a, b) => a.dueAt - b.dueAt || a.id - b.id).map(({ id }) => id));
  }
});

it("takes at most 40 B for each of a million timers, and gives the memory of a burst back", async () => {
  const queue = new TimerQueue();
  const task = named(1);
  const lasting = queue.insert(YEAR_MS, task);
  const before = bytes();
  for (let id = 0; id < 1_000_000; id += 1) queue.insert(60_000 + (id % 60_000), task);
  expect((bytes() - before) / 1_000_000).toBeLessThan(40);
  expect(drain(queue, 120_000)).toHaveLength(1_000_000);
  expect(await bytesOnceBelow(before + 1_000_000)).toBeLessThan(before + 1_000_000);
  expect(queue.cancel(lasting)).toBe(true);
});

it("gives memory back also if some timer of the burst outlives it, once others have come and gone", async () => {
  const queue = new TimerQueue();
  const task = named(1);
  const before = bytes();
  const handles = Array.from({ length: 300_000 }, () => queue.insert(YEAR_MS, task));
  const last = handles.pop() ?? -1;
  for (const handle of handles) queue.cancel(handle);
  for (let id = 0; id < 400_000; id += 1) queue.cancel(queue.insert(id, task));
  expect(queue.cancel(last)).toBe(true);
  for (let id = 0; id < 400_000; id += 1) queue.cancel(queue.insert(id, task));
  handles.length = 0;
  expect(await bytesOnceBelow(before + 1_000_000)).toBeLessThan(before + 1_000_000);
});

it("gives memory back though there is always a timer or two, each set before the last has gone", async () => {
  const queue = new TimerQueue();
  const task = named(1);
  const before = bytes();
  const burst = Array.from({ length: 200_000 }, () => queue.insert(YEAR_MS, task));
  let last = burst.pop() ?? -1;
  for (const handle of burst.splice(0)) queue.cancel(handle);
  for (let id = 0; id < 500_000; id += 1) {
    const next = queue.insert(YEAR_MS + id, task);
    queue.cancel(last);
    last = next;
  }
  expect(queue.size).toBe(1);
  expect(await bytesOnceBelow(before + 1_000_000)).toBeLessThan(before + 1_000_000);
});

it("takes a second burst into the memory that the first has left, and loses none of it", () => {
  const queue = new TimerQueue();
  const task = named(1);
  const burst = Array.from({ length: 50_000 }, (_, id) => queue.insert(YEAR_MS + id, task));
  for (const handle of burst.slice(0, -1)) queue.cancel(handle); // the last one stands in the way of giving up
  for (let id = 0; id < 60_000; id += 1) queue.cancel(queue.insert(id, task)); // long enough for the upper half to close
  const before = bytes();
  for (let id = 0; id < 49_000; id += 1) queue.insert(id, task);
  expect(bytes() - before).toBeLessThan(400_000);
  expect([drain(queue, 50_000).length, drain(queue, 2 * YEAR_MS).length, queue.size]).toEqual([49_000, 1, 0]);
});

it("keeps no task alive that has been taken or cancelled", async () => {
  const queue = new TimerQueue();
  const gone = insertAndRemove(queue);
  await new Promise((resolve) => void setImmediate(resolve)); // a new WeakRef holds its target for the rest of the turn
  collectGarbage();
  expect([gone.map((ref) => ref.deref()), queue.size]).toEqual([[undefined, undefined], 1]);
});

/** In a function of its own, so that no variable holds a task. */
function insertAndRemove(queue: TimerQueue): WeakRef<object>[] {
  const [first, second] = [named(1), named(2)];
  queue.insert(1, first);
  queue.cancel(queue.insert(2, second));
  queue.popDue(1);
  queue.insert(3, named(3));
  return [new WeakRef(first), new WeakRef(second)];
}

/** Another thread gives buffers back, in its own time. */
async function bytesOnceBelow(limit: number): Promise<number> {
  for (let tries = 0; bytes() >= limit && tries < 200; tries += 1) await turn();
  return bytes();
}

function bytes(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
