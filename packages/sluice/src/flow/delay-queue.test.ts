import { expect, it, vi } from "vitest";
import { type AbortSubject, abortCases } from "../testing/abort-suite.ts";
import { turn } from "../testing/turn.ts";
import { unhandledIn } from "../testing/unhandled.stage.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { DelayQueue } from "./delay-queue.ts";

const DAY_MS = 86_400_000;

const subjects: readonly AbortSubject[] = [
  {
    name: "DelayQueue.take",
    open(clock) {
      const queue = new DelayQueue<number>(10_000, { clock });
      return {
        call: (options) => queue.take(options),
        satisfy: () => queue.offer(1),
        state: () => ({ size: queue.size, waiting: queue.stats().waitingConsumers, timers: clock.timers }),
        giveBack: () => queue.offer(1),
      };
    },
  },
  {
    name: "DelayQueue.take of what must ripen",
    open(clock) {
      const queue = new DelayQueue<number>(10_000, { clock });
      queue.offer(1, { delayMs: 100_000 });
      return {
        call: (options) => queue.take(options),
        satisfy: () => queue.offer(2, { delayMs: 0 }),
        state: () => ({ size: queue.size, waiting: queue.stats().waitingConsumers }),
        giveBack: () => queue.offer(2, { delayMs: 0 }),
      };
    },
  },
];

for (const subject of subjects) for (const { title, run } of abortCases(subject)) it(title, run);

it("gives no item before it is due, and those that are by when they were", async () => {
  const clock = new VirtualClock();
  const queue = new DelayQueue<string>(9, { clock });
  queue.offer("late", { delayMs: 30 });
  queue.offer("early", { delayMs: 10 });
  queue.offer("also early", { delayMs: 10 });
  expect([queue.poll(), queue.peek(), queue.pollBatch(9), queue.size]).toEqual([undefined, undefined, [], 3]);
  await clock.advance(10);
  expect([queue.peek(), queue.pollBatch(9)]).toEqual(["early", ["early", "also early"]]);
  await clock.advance(20);
  expect(queue.poll()).toBe("late");
});

it("wakes a consumer the moment an item is due, with one timer for the first, and none while nobody waits", async () => {
  const clock = new VirtualClock();
  const queue = new DelayQueue<number>(1_000, { clock });
  for (let item = 1; item <= 500; item += 1) queue.offer(item, { delayMs: 10 * item });
  expect(clock.timers).toBe(0);
  const takes = [queue.take(), queue.take()];
  expect(clock.timers).toBe(1);
  await clock.advance(9);
  expect(queue.stats().waitingConsumers).toBe(2);
  await clock.advance(1);
  expect([await takes[0], queue.stats().waitingConsumers, clock.timers]).toEqual([1, 1, 1]);
  queue.offer(0, { delayMs: 5 }); // before all others
  await clock.advance(5);
  expect([await takes[1], queue.stats().waitingConsumers, clock.timers]).toEqual([0, 0, 0]);
});

it("lets no newcomer have what is due before a consumer that waits, though the timer has yet to fire", async () => {
  const clock = new VirtualClock();
  let lateMs = 0;
  const queue = new DelayQueue<string>(9, {
    clock: {
      now: () => clock.now() + lateMs,
      wallNow: () => 0,
      setTimer: clock.setTimer.bind(clock),
      track: clock.track.bind(clock),
    },
  });
  queue.offer("first", { delayMs: 10 });
  queue.offer("second", { delayMs: 10 });
  const taken = queue.take();
  lateMs = 50; // the process was busy
  expect([queue.poll(), queue.poll(), await taken]).toEqual(["second", undefined, "first"]);
});

it("is due at an instant of the wall clock, whatever that does meanwhile", async () => {
  const clock = new VirtualClock({ wallStartAt: 1_000_000 });
  const queue = new DelayQueue<string>(9, { clock });
  queue.offer("soon", { dueAt: 1_000_050 });
  queue.offer("past", { dueAt: 5 });
  expect(queue.pollBatch(9)).toEqual(["past"]);
  await clock.advance(49);
  expect(queue.poll()).toBe(undefined);
  await clock.advance(1);
  expect(queue.poll()).toBe("soon");
});

it("counts the delay from the put, also while that waits for room", async () => {
  const clock = new VirtualClock();
  const queue = new DelayQueue<string>(1, { clock });
  queue.offer("in", { delayMs: 20 });
  const put = queue.put("waits", { delayMs: 30 });
  await clock.advance(20);
  expect([queue.poll(), await put, queue.poll()]).toEqual(["in", true, undefined]);
  await clock.advance(10);
  expect(queue.poll()).toBe("waits");
});

it("lets in a waiting producer whose item is due, for the consumer that waits", async () => {
  const clock = new VirtualClock();
  const queue = new DelayQueue<string>(1, { clock });
  queue.offer("far", { delayMs: 1_000 });
  const takes = [queue.take(), queue.take()];
  const puts = [queue.put("due"), queue.put("due too")];
  expect(queue.stats()).toMatchObject({ waitingConsumers: 2, waitingProducers: 2 });
  expect(queue.remove("far")).toBe(true);
  expect(await Promise.all([...takes, ...puts])).toEqual(["due", "due too", true, true]);
  expect([queue.size, clock.timers]).toEqual([0, 0]);
});

it("counts age from when an item was due: what must ripen is not late", async () => {
  const clock = new VirtualClock();
  const queue = new DelayQueue<string>(9, { clock });
  queue.offer("a", { delayMs: 100 });
  await clock.advance(100);
  expect(queue.oldestAgeMs).toBe(0);
  await clock.advance(40);
  expect(queue.oldestAgeMs).toBe(40);
});

it("gives what is in, each in its time, after it was closed, and then the end", async () => {
  const clock = new VirtualClock();
  const queue = new DelayQueue<string>(9, { clock });
  queue.offer("b", { delayMs: 20 });
  queue.offer("a", { delayMs: 10 });
  const got: string[] = [];
  const over = queue.consume((item) => void got.push(item), { workers: 3 });
  queue.close();
  await clock.advance(15);
  expect([got, queue.stats().consumers]).toEqual([["a"], 3]);
  await clock.advance(5);
  await over;
  expect([got, clock.timers, queue.stats().consumers]).toEqual([["a", "b"], 0, 0]);
});

it("evicts what is due first when told to drop the oldest", async () => {
  const clock = new VirtualClock();
  const lost: string[] = [];
  const queue = new DelayQueue<string>(2, { clock, whenFull: "drop-oldest", onUndelivered: (item) => lost.push(item) });
  queue.offer("b", { delayMs: 20 });
  queue.offer("a", { delayMs: 10 });
  queue.offer("c", { delayMs: 5 });
  await clock.advance(20);
  expect([lost, queue.pollBatch(9)]).toEqual([["a"], ["c", "b"]]);
});

it("waits for ever for what is never due, unless it is removed", async () => {
  const clock = new VirtualClock();
  const queue = new DelayQueue<string>(1, { clock });
  queue.offer("never", { delayMs: Infinity });
  const taken = queue.take();
  expect([clock.timers, queue.remove("never"), queue.offer("now")]).toEqual([0, true, true]);
  expect(await taken).toBe("now");
});

it("keeps no timer for what was removed, though somebody waits", async () => {
  const clock = new VirtualClock();
  const queue = new DelayQueue<string>(2, { clock });
  const taken = queue.take();
  queue.offer("removed", { delayMs: 10 });
  expect([clock.timers, queue.remove("removed"), clock.timers]).toEqual([1, true, 0]);
  queue.offer("due");
  expect(await taken).toBe("due");
});

it("C149: what is due in 25, 30 and 400 days comes once, in its time, and can be called off at any moment", async () => {
  const clock = new VirtualClock();
  const queue = new DelayQueue<number>(9, { clock });
  const got: [number, number][] = [];
  const over = queue.consume((days) => void got.push([days, clock.now() / DAY_MS]));
  for (const days of [400, 25, 30, 26]) queue.offer(days, { delayMs: days * DAY_MS });
  await clock.advance(1_000);
  expect([got, clock.timers]).toEqual([[], 1]);
  await clock.advance(25.5 * DAY_MS);
  expect(queue.remove(26)).toBe(true);
  await clock.advance(500 * DAY_MS);
  expect(got).toEqual([
    [25, 25],
    [30, 30],
    [400, 400],
  ]);
  queue.close();
  await over;
});

it("C151: what must ripen hides nothing that is ready", async () => {
  const clock = new VirtualClock();
  const queue = new DelayQueue<string>(9, { clock });
  const takes = [queue.take(), queue.take(), queue.take()];
  queue.offer("A");
  queue.offer("B", { delayMs: 60_000 });
  queue.offer("C", { delayMs: 0 });
  await turn();
  expect([await takes[0], await takes[1], queue.size]).toEqual(["A", "C", 1]);
  await clock.advance(60_000);
  expect(await takes[2]).toBe("B");
});

it("C152: four equal items that are due in one millisecond are four", async () => {
  const clock = new VirtualClock();
  const queue = new DelayQueue<string>(9, { clock });
  const got: string[] = [];
  void queue.consume((item) => void got.push(item), { workers: 2 });
  for (let copy = 0; copy < 4; copy += 1) queue.offer("same", { delayMs: 10 });
  await clock.advance(10);
  expect(got).toEqual(["same", "same", "same", "same"]);
});

it("C154: a long delay hands nothing out twice: three consumers, one execution", async () => {
  const clock = new VirtualClock();
  const queue = new DelayQueue<string>(9, { clock });
  const got: number[] = [];
  for (let consumer = 0; consumer < 3; consumer += 1) void queue.consume(() => void got.push(clock.now()));
  queue.offer("item", { delayMs: 300_000 });
  await clock.advance(400_000);
  expect(got).toEqual([300_000]);
});

it("says what is wrong with a delay, and loses nothing", async () => {
  const queue = new DelayQueue<string>(1);
  await expect(queue.put("a", { delayMs: -1 })).rejects.toThrow("delayMs must be >= 0, got -1");
  await expect(queue.put("a", { dueAt: Number.NaN })).rejects.toThrow("dueAt must be finite and >= 0, got NaN");
  await expect(queue.put("a", { delayMs: 1, dueAt: 1 })).rejects.toThrow("delayMs and dueAt must not both be given");
  expect(() => queue.offer("a", { delayMs: "1" as unknown as number })).toThrow(TypeError);
  expect(() => new DelayQueue(0)).toThrow("capacity must be an integer >= 1, got 0");
  expect([queue.size, queue.stats().waitingProducers]).toEqual([0, 0]);
});

it("keeps nobody in line for a clock that throws", async () => {
  const clock = new VirtualClock();
  const failure = new Error("no timers left");
  const queue = new DelayQueue<string>(9, {
    clock: {
      now: () => clock.now(),
      wallNow: () => 0,
      track: (work) => work,
      setTimer: () => {
        throw failure;
      },
    },
  });
  queue.offer("a", { delayMs: 10 });
  const unheard = await unhandledIn(() => expect(queue.take()).rejects.toBe(failure));
  expect([queue.stats().waitingConsumers, unheard]).toEqual([0, []]); // no wait that nobody was given
});

it("loses no item to a clock that throws, and lets all who wait hear of it", async () => {
  const clock = new VirtualClock();
  const failure = new Error("no timers left");
  let [fails, timersFail] = [false, false];
  const failing = <R>(work: () => R): R => {
    if (fails) throw failure;
    return work();
  };
  const queue = new DelayQueue<string>(20_000, {
    clock: {
      now: () => failing(() => clock.now()),
      wallNow: () => 0,
      track: (work) => work,
      setTimer(delayMs, task, options) {
        if (timersFail) throw failure;
        return failing(() => clock.setTimer(delayMs, task, options));
      },
    },
  });
  queue.offer("a", { delayMs: 10 });
  const takes = Array.from({ length: 10_000 }, () => queue.take());
  const ends = takes.map((take) => take.catch((error: unknown) => error));
  fails = true;
  await clock.advance(10);
  expect(new Set(await Promise.all(ends))).toEqual(new Set([failure]));
  fails = false;
  expect([queue.stats().waitingConsumers, await queue.take()]).toEqual([0, "a"]);

  queue.offer("late", { delayMs: 50 });
  const two = [queue.take(), queue.take()].map((take) => take.catch((error: unknown) => error));
  const put = queue.put("early", { delayMs: 10 });
  timersFail = true;
  expect(queue.offer("earlier", { delayMs: 5 })).toBe(true);
  expect([await put, await Promise.all(two)]).toEqual([true, [failure, failure]]);
  await clock.advance(50);
  timersFail = false;
  expect([queue.pollBatch(9), clock.timers]).toEqual([["earlier", "early", "late"], 0]);
});

it("finds what is removed among items that are the same or look so, also those that come and go after a first removal", () => {
  const queue = new DelayQueue<number>(99, { clock: new VirtualClock() });
  for (const item of [0, -0, 7, 7]) queue.offer(item, { delayMs: item === 0 ? 5 : 0 });
  expect([queue.remove(-0), queue.remove(-0), queue.remove(0), queue.remove(0)]).toEqual([true, false, true, false]);
  expect([queue.poll(), queue.remove(7), queue.remove(7), queue.size]).toEqual([7, true, false, 0]);
  queue.offer(8);
  expect([queue.remove(8), queue.remove(8), queue.size, queue.stats().undelivered]).toEqual([true, false, 0, 4]);
});

it("looks at those that are the same only when it removes one of many", () => {
  const queue = new DelayQueue<object>(2_000);
  let looked = 0;
  const is = vi.spyOn(Object, "is").mockImplementation((a, b) => (looked += 1) > 0 && a === b);
  try {
    const items = Array.from({ length: 2_000 }, () => ({}));
    for (const item of items) queue.offer(item, { delayMs: 1_000 });
    for (const item of items) queue.remove(item);
  } finally {
    is.mockRestore();
  }
  expect([looked, queue.size]).toEqual([2_000, 0]);
});
