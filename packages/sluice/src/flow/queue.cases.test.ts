// Faults that others have reported of queues and channels, and the ways in which producers and consumers fail.
import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { ClosedError, TimeoutError } from "../errors.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { DelayQueue } from "./delay-queue.ts";
import { PriorityQueue } from "./priority-queue.ts";
import { Queue } from "./queue.ts";

const pauseOn =
  (clock: VirtualClock) =>
  (ms: number): Promise<void> =>
    new Promise((onTimer) => void clock.setTimer(ms, { onTimer }));

it("keeps no read of an iterator that was answered, however many follow while another waits", async () => {
  const queue = new Queue<number>(1);
  const items = queue[Symbol.asyncIterator]();
  let waiting = items.next();
  for (let item = 0; item < 9; item += 1) {
    const next = items.next();
    queue.offer(item);
    expect(await waiting).toEqual({ done: false, value: item });
    waiting = next;
  }
  let kept = -1;
  for (let read: object | undefined = waiting; read !== undefined; read = Reflect.get(read, "before")) kept += 1;
  expect(kept).toBeLessThanOrEqual(1);
  const last = items.next();
  await items.return?.();
  const end = { done: true, value: undefined };
  expect(await Promise.all([waiting, last])).toEqual([end, end]);
});

it("C032: an abort of a waiting put and of a running item leaves no jam, and an aborted signal settles at once", async () => {
  const queue = new Queue<string>(1);
  const [running, waiting, late] = [new AbortController(), new AbortController(), new AbortController()];
  late.abort("too late");
  const done: string[] = [];
  const work = async (item: string): Promise<void> => {
    if (item === "T1") await new Promise((resolve) => running.signal.addEventListener("abort", resolve));
    done.push(item);
  };
  void queue.consume(work);
  await queue.put("T1");
  await turn();
  queue.offer("fills it");
  const refused = [queue.put("T2", { signal: waiting.signal }), queue.put("T4", { signal: late.signal })];
  running.abort();
  waiting.abort("changed my mind");
  expect((await Promise.allSettled(refused)).map((each) => each.status === "rejected" && each.reason)).toEqual([
    "changed my mind",
    "too late",
  ]);
  await queue.put("T3");
  await turn();
  expect([done, queue.size]).toEqual([["T1", "fills it", "T3"], 0]);
  expect(queue.stats()).toMatchObject({ waitingProducers: 0, waitingConsumers: 1 });
});

it("C033: whoever waits is settled when the queue is given up, with what it was given up for", async () => {
  const queue = new Queue<number>(1, { onUndelivered: () => {} });
  const puts = [0, 1, 2, 3].map((item) => queue.put(item));
  queue.fail(new Error("cleared"));
  const outcomes = await Promise.allSettled(puts);
  expect(outcomes.map((each) => (each.status === "fulfilled" ? each.value : each.reason.message))).toEqual([
    true,
    "cleared",
    "cleared",
    "cleared",
  ]);
  expect(queue.size).toBe(0);
});

it("C034: consuming again after a stop brings back the same number of workers, neither more nor less", async () => {
  const queue = new Queue<number>(20);
  let [running, most] = [0, 0];
  const work = async (): Promise<void> => {
    running += 1;
    most = Math.max(most, running);
    await turn();
    running -= 1;
  };
  for (let item = 0; item < 20; item += 1) queue.offer(item);
  for (let round = 0; round < 3; round += 1) {
    const stop = new AbortController();
    const over = queue.consume(work, { workers: 5, signal: stop.signal });
    await turn();
    stop.abort("pause");
    await expect(over).rejects.toBe("pause");
    expect([queue.stats().consumers, running]).toEqual([0, 0]);
  }
  queue.close();
  await queue.consume(work, { workers: 5 });
  expect([most, queue.size]).toEqual([5, 0]);
});

it("C035: 50 000 items whose work ends at once overflow no stack", async () => {
  const queue = new Queue<number>(50_000);
  for (let item = 0; item < 50_000; item += 1) queue.offer(item);
  queue.close();
  let count = 0;
  await queue.consume(() => (count += 1));
  expect(count).toBe(50_000);
});

it("C039: a place that is free for who waits is never taken by who comes before that one resumes", async () => {
  for (let k = 0; k <= 10; k += 1) {
    const queue = new Queue<string>(1);
    queue.offer("A");
    const put = queue.put("B").then(() => "B is in");
    const late = (async () => {
      for (let turns = 0; turns < k; turns += 1) await Promise.resolve();
      return queue.offer("D");
    })();
    expect(queue.poll()).toBe("A");
    expect([await late, await put, queue.pollBatch(9)]).toEqual([false, "B is in", ["B"]]);
  }
});

it("room is given on to who waits for it, in whatever way it comes about", async () => {
  const ways: Record<string, (queue: PriorityQueue<string>) => unknown> = {
    take: (queue) => queue.take(),
    poll: (queue) => queue.poll(),
    pollBatch: (queue) => queue.pollBatch(1),
    takeBatch: (queue) => queue.takeBatch(1),
    remove: (queue) => queue.remove("in"),
    iterate: (queue) => queue[Symbol.asyncIterator]().next(),
  };
  for (const way of Object.values(ways)) {
    const queue = new PriorityQueue<string>(1);
    queue.offer("in");
    const put = queue.put("next");
    void way(queue);
    expect(await put).toBe(true);
  }
  const held = new PriorityQueue<string>(1);
  const place = await held.reserve();
  const put = held.put("next");
  place.release();
  expect(await put).toBe(true);
});

it("who waits for the end of what has ended already is told at once", async () => {
  const queue = new Queue<number>(1);
  queue.close();
  await queue.consume(() => expect.fail("there is no item"));
  expect(await queue[Symbol.asyncIterator]().next()).toEqual({ done: true, value: undefined });
  const working = new Queue<number>(1);
  working.offer(1);
  let isDone = false;
  const over = working.consume(() => turn().then(() => (isDone = true)));
  working.close(); // empty before its last item is done with
  await turn();
  await over;
  expect(isDone).toBe(true);
});

it("an item is not lost when its receiver is cancelled in the turn of the grant, and no drop is unseen", async () => {
  const lost: number[] = [];
  const queue = new Queue<number>(1, { whenFull: "drop-oldest", onUndelivered: (item) => lost.push(item) });
  const call = new AbortController();
  const taken = queue.take({ signal: call.signal });
  queue.offer(1);
  call.abort();
  expect(await taken).toBe(1);
  const cancelled = queue.take({ signal: AbortSignal.abort("no") }).catch((error: unknown) => error);
  queue.offer(2);
  queue.offer(3);
  queue.fail("end");
  expect([await cancelled, lost, queue.stats().undelivered]).toEqual(["no", [2, 3], 2]);
});

it("F01.1: an unbounded list grows as long as its consumer is slower; a capacity holds the producer back", async () => {
  const clock = new VirtualClock();
  const pause = pauseOn(clock);
  const list: number[] = [];
  const queue = new Queue<number>(100, { clock });
  let [deepest, produced] = [0, 0];
  const unbounded = async (): Promise<void> => {
    for (let item = 0; ; item += 1) await pause(1).then(() => list.push(item));
  };
  const bounded = async (): Promise<void> => {
    for (; ; produced += 1) await pause(1).then(() => queue.put(produced));
  };
  const consume = async (): Promise<void> => {
    for (;;) {
      await pause(10);
      list.shift();
      await queue.take();
      deepest = Math.max(deepest, queue.size);
    }
  };
  for (const loop of [unbounded, bounded, consume]) void loop();
  await clock.advance(1_000);
  const early = list.length;
  await clock.advance(1_000);
  expect(list.length - early).toBeGreaterThan(850); // 1000 come, 100 go, for ever
  expect(deepest).toBe(100);
  expect(produced).toBeLessThanOrEqual(200 + 100 + 1); // what was taken, what is in, what waits
});

it("F01.2: a loop that dies silently leaves producers waiting for ever; a timeout tells them", async () => {
  const clock = new VirtualClock();
  const queue = new Queue<number>(2, { clock });
  const failure = new Error("bad item");
  const consumer = (async () => {
    for await (const item of queue) if (item === 1) throw failure;
  })();
  const died = consumer.catch((error: unknown) => error);
  const producer = (async () => {
    for (let item = 0; ; item += 1) await queue.put(item);
  })();
  const stopped = producer.catch((error: unknown) => error);
  await clock.advance(3_600_000);
  expect(queue.stats()).toMatchObject({ size: 2, taken: 2, waitingProducers: 1, oldestAgeMs: 3_600_000 }); // the fault
  const hasty = queue.put(-1, { timeoutMs: 100 }).catch((error: unknown) => error);
  await clock.advance(100);
  expect(await hasty).toBeInstanceOf(TimeoutError);
  queue.fail(await died);
  expect(await stopped).toBe(failure);
});

it("F01.2: the queue knows of the death of what consumes it, shows it, and fails whoever puts", async () => {
  const clock = new VirtualClock();
  const queue = new Queue<number>(2, { clock });
  const failure = new Error("bad item");
  const over = queue
    .consume((item) => {
      if (item === 1) throw failure;
    })
    .catch((error: unknown) => error);
  expect(queue.stats().consumers).toBe(1);
  const stopped = (async () => {
    for (let item = 0; ; item += 1) await queue.put(item);
  })().catch((error: unknown) => error);
  expect([await over, await stopped]).toEqual([failure, failure]);
  await clock.advance(10_000);
  const { consumers, closed, takenPerSecond } = queue.stats();
  expect([consumers, closed, Math.round(takenPerSecond)]).toEqual([0, true, 0]);
});

it("F01.3: a producer that waits for room when the consumers have stopped hangs the shutdown; close lets it end", async () => {
  const clock = new VirtualClock();
  const queue = new Queue<number>(1, { clock });
  queue.offer(1);
  let over = false;
  const shutdown = queue
    .put(2)
    .catch((error: unknown) => error)
    .finally(() => (over = true));
  await clock.advance(3_600_000);
  expect(over).toBe(false); // the fault
  queue.close();
  expect(await shutdown).toBeInstanceOf(ClosedError);
  expect([await queue.take(), await queue.take().catch((error: { code: string }) => error.code)]).toEqual([
    1,
    "CLOSED",
  ]);
});

it("F01.4: a poison item that is tried again in place starves all others; with a delay and a cap they go on", async () => {
  const clock = new VirtualClock();
  const pause = pauseOn(clock);
  const handle = (item: string): Promise<boolean> => pause(10).then(() => item !== "poison");
  const stuck = new Queue<string>(10, { clock });
  const [again, dead, done] = [
    new DelayQueue<readonly [string, number]>(10, { clock }),
    [] as string[],
    [] as string[],
  ];
  void stuck.consume(async (item) => {
    while (!(await handle(item)));
  });
  void again.consume(async ([item, attempt]) => {
    if (await handle(item)) done.push(item);
    else if (attempt === 3) dead.push(item);
    else await again.put([item, attempt + 1], { delayMs: 1_000 });
  });
  for (const item of ["poison", "one", "two"]) {
    await stuck.put(item);
    await again.put([item, 1]);
  }
  await clock.advance(60_000);
  expect([stuck.size, stuck.oldestAgeMs]).toEqual([2, 60_000]); // the fault
  expect([done, dead, again.size]).toEqual([["one", "two"], ["poison"], 0]);
});

it("F01.5: depth stays the same while arrivals outrun service; age tells", async () => {
  const clock = new VirtualClock();
  const queue = new Queue<number>(5, { clock });
  const seen: { size: number; oldestAgeMs: number }[] = [];
  for (let second = 1; second <= 60; second += 1) {
    for (let arrival = 0; arrival < 12; arrival += 1) void queue.put(second); // 12 a second come,
    for (let served = 0; served < 10; served += 1) queue.poll(); // 10 a second go
    await clock.advance(1_000);
    if (second % 20 === 0) seen.push({ size: queue.size, oldestAgeMs: queue.oldestAgeMs });
  }
  expect(seen.map(({ size }) => size)).toEqual([5, 5, 5]); // the fault: nothing to see
  expect(seen.map(({ oldestAgeMs }) => oldestAgeMs)).toEqual([4_000, 7_000, 10_000]);
});

it("F08.2: there is no channel without a bound, so that a mismatch of rates holds back or drops, as was asked for", async () => {
  expect(() => new Queue<number>(undefined as unknown as number)).toThrow("capacity must be a number");
  expect(() => new Queue<number>(Infinity)).toThrow(RangeError);
  for (const whenFull of ["reject", "drop-newest", "drop-oldest"] as const) {
    const queue = new Queue<number>(100, { whenFull });
    for (let item = 0; item < 10_000; item += 1) void queue.put(item).catch(() => {});
    const { size, waitingProducers, dropped, rejected } = queue.stats();
    expect([size, waitingProducers, dropped + rejected]).toEqual([100, 0, 9_900]);
  }
});
