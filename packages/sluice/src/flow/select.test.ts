import { AsyncLocalStorage } from "node:async_hooks";
import { getEventListeners } from "node:events";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { ClosedError, TimeoutError } from "../errors.ts";
import { type AbortSubject, abortCases } from "../testing/abort-suite.ts";
import { seededRandom } from "../testing/seeded-random.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { DelayQueue } from "./delay-queue.ts";
import { PriorityQueue } from "./priority-queue.ts";
import type { QueueStats } from "./queue-options.ts";
import { Queue } from "./queue.ts";
import { aborting, elapsing, iterating, putting, type SelectClause, taking } from "./select-clause.ts";
import { select, trySelect } from "./select.ts";

it("asks priorityOf once for each select that waits to put, also for selects that share the clause", async () => {
  const asked: string[] = [];
  const queue = new PriorityQueue<string>(1, { priorityOf: (item) => (asked.push(item) > 0 ? 0 : 1) });
  queue.offer("in");
  const clause = putting(queue, "late");
  const both = [select({ clause }), select({ clause })];
  expect(asked).toEqual(["in", "late", "late"]);
  expect(queue.poll()).toBe("in");
  expect([await both[0], queue.poll(), await both[1], queue.poll()]).toEqual([
    { key: "clause", value: true },
    "late",
    { key: "clause", value: true },
    "late",
  ]);
});

const subjects: readonly AbortSubject[] = [
  {
    name: "select of takes",
    open(clock) {
      const [one, two] = [new Queue<number>(10_000, { clock }), new Queue<number>(10_000, { clock })];
      return {
        call: (options) => select({ one: taking(one), two: taking(two) }, { clock, ...options }),
        satisfy: () => two.offer(1),
        state: () => ({ size: one.size + two.size, one: waiting(one), two: waiting(two) }),
        giveBack: () => two.offer(1),
      };
    },
  },
  {
    name: "select of a put",
    open(clock) {
      const [full, empty] = [new Queue<number>(1, { clock }), new Queue<number>(1, { clock })];
      full.offer(0);
      return {
        call: (options) => select({ sent: putting(full, 1), got: taking(empty) }, { clock, ...options }),
        satisfy: () => full.poll(),
        state: () => ({ size: full.size, full: waiting(full), empty: waiting(empty) }),
        giveBack: () => full.poll(),
      };
    },
  },
];

for (const subject of subjects) for (const { title, run } of abortCases(subject)) it(title, run);

it("lets one clause happen that can, at once, and none of the others", async () => {
  const [jobs, out] = [new Queue<string>(2), new Queue<string>(1)];
  jobs.offer("job");
  out.offer("in the way");
  expect(await select({ sent: putting(out, "mine"), job: taking(jobs) })).toEqual({ key: "job", value: "job" });
  expect([out.pollBatch(9), jobs.size, waiting(out), waiting(jobs)]).toEqual([["in the way"], 0, 0, 0]);
  expect(await select({ sent: putting(out, "mine"), job: taking(jobs) })).toEqual({ key: "sent", value: true });
  expect(out.poll()).toBe("mine");
});

it("waits for the first clause that can, and leaves all other lines in the same turn", async () => {
  const [a, b, full] = [new Queue<number>(1), new Queue<number>(1), new Queue<number>(1)];
  full.offer(0);
  const first = select({ a: taking(a), b: taking(b), sent: putting(full, 1) });
  expect([waiting(a), waiting(b), waiting(full)]).toEqual([1, 1, 1]);
  b.offer(7);
  expect([waiting(a), waiting(b), waiting(full)]).toEqual([0, 0, 0]);
  a.offer(8);
  full.poll();
  expect([await first, a.poll(), full.poll()]).toEqual([{ key: "b", value: 7 }, 8, undefined]);
});

it("loses no message of a branch that did not win, where a race of takes loses one for each", async () => {
  const [a, b] = [new Queue<string>(1), new Queue<string>(1)];
  const raced = Promise.race([a.take(), b.take()]);
  a.offer("a1");
  b.offer("b1");
  expect([await raced, a.poll(), b.poll()]).toEqual(["a1", undefined, undefined]); // the fault: b1 is gone
  const selected = select({ a: taking(a), b: taking(b) });
  a.offer("a2");
  b.offer("b2");
  expect([await selected, a.poll(), b.poll()]).toEqual([{ key: "a", value: "a2" }, undefined, "b2"]);
});

it("chooses by chance among those that can happen, each as often as any other", () => {
  const random = seededRandom(7);
  const queues = [new Queue<number>(1), new Queue<number>(1), new Queue<number>(1)] as const;
  const counts: Record<string, number> = { a: 0, b: 0, c: 0 };
  for (let round = 0; round < 3_000; round += 1) {
    for (const queue of queues) queue.offer(round);
    const [a, b, c] = queues;
    counts[trySelect({ a: taking(a), b: taking(b), c: taking(c) }, { random })?.key ?? ""]! += 1;
  }
  for (const count of Object.values(counts)) expect(Math.abs(count - 1_000)).toBeLessThan(100);
});

it("chooses the first in the order of writing when biased", async () => {
  const [control, work] = [new Queue<string>(9), new Queue<string>(9)];
  for (const queue of [work, control]) queue.offer("one");
  for (const key of ["control", "work"]) {
    const selected = await select({ control: taking(control), work: taking(work) }, { biased: true });
    expect(selected.key).toBe(key);
  }
});

it("never waits as trySelect: undefined is its default clause", () => {
  const [empty, full] = [new Queue<number>(1), new Queue<number>(1)];
  full.offer(1);
  expect(trySelect({ got: taking(empty), sent: putting(full, 2), late: elapsing(1) })).toBe(undefined);
  expect([waiting(empty), waiting(full), full.size]).toEqual([0, 0, 1]);
  expect(trySelect({ got: taking(full), sent: putting(full, 2) }, { biased: true })).toEqual({ key: "got", value: 1 });
});

it("waits for time to pass, and leaves no timer when something else came first", async () => {
  const clock = new VirtualClock();
  const jobs = new Queue<string>(1, { clock });
  const late = select({ job: taking(jobs), late: elapsing(100) }, { clock });
  await clock.advance(100);
  expect([await late, waiting(jobs)]).toEqual([{ key: "late", value: undefined }, 0]);
  const early = select(
    { job: taking(jobs), late: elapsing(100), never: elapsing(Infinity) },
    { clock, timeoutMs: 500 },
  );
  expect(clock.timers).toBe(2);
  jobs.offer("job");
  expect([await early, clock.timers]).toEqual([{ key: "job", value: "job" }, 0]);
  expect(await select({ job: taking(jobs), late: elapsing(0) }, { clock })).toEqual({ key: "late", value: undefined });
});

it("waits for a signal as one of the clauses, with its reason, and leaves no listener", async () => {
  const [stop, jobs] = [new AbortController(), new Queue<string>(1)];
  const stopped = select({ job: taking(jobs), stop: aborting(stop.signal) });
  const job = select({ job: taking(jobs), stop: aborting(stop.signal) });
  expect(getEventListeners(stop.signal, "abort")).toHaveLength(1);
  jobs.offer("first");
  stop.abort("enough");
  expect(await stopped).toEqual({ key: "job", value: "first" });
  expect(await job).toEqual({ key: "stop", value: "enough" });
  expect([waiting(jobs), getEventListeners(stop.signal, "abort").length]).toEqual([0, 0]);
  expect(await select({ job: taking(jobs), stop: aborting(stop.signal) })).toEqual({ key: "stop", value: "enough" });
});

it("gives nothing to a select whose signal aborts, whoever else hears of the abort before it", async () => {
  const [call, jobs, full] = [new AbortController(), new Queue<string>(1), new Queue<string>(1)];
  const stop = new AbortController();
  full.offer("in");
  call.signal.addEventListener("abort", () => {
    stop.abort("with it");
    jobs.offer("job");
    full.poll();
  });
  const { signal } = call;
  const selects = [
    select({ job: taking(jobs), sent: putting(full, "mine") }, { signal }),
    select({ stop: aborting(signal), job: taking(jobs) }, { signal }),
    select({ stop: aborting(stop.signal), job: taking(jobs) }, { signal }),
  ].map((each) => each.catch((error: unknown) => error));
  call.abort("enough");
  expect([await Promise.all(selects), jobs.poll(), full.size]).toEqual([["enough", "enough", "enough"], "job", 0]);
});

it("rejects as the call would whose clause it is: when a queue ends, or is full and told to reject", async () => {
  const [closed, failed, strict] = [new Queue(1), new Queue(1), new Queue<number>(1, { whenFull: "reject" })];
  const [open, failure] = [new Queue(1), new Error("gone")];
  const waits = [select({ got: taking(closed), other: taking(open) }), select({ sent: putting(failed, 1) })];
  failed.offer(0);
  const later = select({ sent: putting(failed, 2), other: taking(open) });
  closed.close();
  failed.fail(failure);
  await expect(waits[0]).rejects.toThrow(ClosedError);
  expect(await waits[1]).toEqual({ key: "sent", value: true });
  await expect(later).rejects.toBe(failure);
  await expect(select({ got: taking(closed) })).rejects.toThrow(ClosedError);
  strict.offer(1);
  await expect(select({ sent: putting(strict, 2), got: taking(open) })).rejects.toMatchObject({ code: "QUEUE_FULL" });
  expect([waiting(open), waiting(closed), waiting(strict)]).toEqual([0, 0, 0]);
});

it("tells the end of a queue as an iterator does, where asked to", async () => {
  const [left, right] = [new Queue<number>(2), new Queue<number>(2)];
  const got: number[] = [];
  const merged = (async () => {
    type Clause = SelectClause<IteratorResult<number, undefined>> | undefined;
    let [a, b]: Clause[] = [iterating(left), iterating(right)];
    while (a !== undefined || b !== undefined) {
      const { key, value } = await select({ a, b });
      if (value.done !== true) got.push(value.value);
      else if (key === "a") a = undefined; // what is undefined can't happen, as with a nil channel
      else b = undefined;
    }
  })();
  for (const item of [1, 2, 3]) await left.put(item);
  left.close();
  for (const item of [4, 5]) await right.put(item);
  right.close();
  await merged;
  expect(got).toEqual([1, 2, 3, 4, 5]);
  right.fail("after the end");
  await expect(select({ b: iterating(right) })).rejects.toBe("after the end");
});

it("hands over between two selects, and never to itself", async () => {
  const channel = new Queue<string>(0);
  const own = select({ got: taking(channel), sent: putting(channel, "own") });
  expect([channel.stats().waitingConsumers, channel.stats().waitingProducers]).toEqual([1, 1]);
  const other = select({ got: taking(channel), sent: putting(channel, "other") }, { biased: true });
  expect([await own, await other]).toEqual([
    { key: "sent", value: true },
    { key: "got", value: "own" },
  ]);
  expect(waiting(channel)).toBe(0);
});

it("takes its place in line: no newcomer is served before a select that waits", async () => {
  const [jobs, full] = [new Queue<number>(3), new Queue<number>(1)];
  full.offer(0);
  const selected = select({ job: taking(jobs) });
  const taken = jobs.take();
  const put = select({ sent: putting(full, 1) });
  const later = full.put(2);
  jobs.offer(1);
  jobs.offer(2);
  expect([(await selected).value, await taken]).toEqual([1, 2]);
  expect([full.poll(), full.poll(), full.poll(), await put, await later]).toMatchObject([
    0,
    1,
    2,
    { value: true },
    true,
  ]);
});

it("claims only one of several clauses on one queue", async () => {
  const jobs = new Queue<number>(3);
  const selected = select({ one: taking(jobs), two: taking(jobs) });
  jobs.offer(1);
  jobs.offer(2);
  expect([(await selected).value, jobs.pollBatch(9)]).toEqual([1, [2]]);
});

it("selects from queues by priority and by delay", async () => {
  const clock = new VirtualClock();
  const urgent = new PriorityQueue<string>(2, { clock });
  const due = new DelayQueue<string>(2, { clock });
  const clauses = { urgent: taking(urgent), due: taking(due) };
  due.offer("reminder", { delayMs: 50 });
  const first = select(clauses);
  await clock.advance(50);
  expect([await first, clock.timers]).toEqual([{ key: "due", value: "reminder" }, 0]);
  expect(await select({ sent: putting(urgent, "low", { priority: -1 }) })).toEqual({ key: "sent", value: true });
  urgent.offer("high");
  due.offer("later", { delayMs: 50 });
  const second = select(clauses);
  expect([await second, due.stats().waitingConsumers, clock.timers]).toEqual([{ key: "urgent", value: "high" }, 0, 0]);
});

it("waits to put by the priority of its item, where items have one", async () => {
  const queue = new PriorityQueue<string>(1);
  queue.offer("in");
  const low = queue.put("low", { priority: 0 });
  const high = select({ sent: putting(queue, "high", { priority: 1 }) });
  expect([queue.poll(), queue.poll(), queue.poll()]).toEqual(["in", "high", "low"]);
  expect([(await high).value, await low]).toEqual([true, true]);
});

it("drops its item where its queue drops, and says so", async () => {
  const full = new Queue<number>(1, { whenFull: "drop-newest" });
  full.offer(1);
  expect(await select({ sent: putting(full, 2) })).toEqual({ key: "sent", value: false });
});

it("settles in the same number of turns whether or not it waited", async () => {
  const [there, later] = [new Queue<number>(1), new Queue<number>(1)];
  const log: string[] = [];
  there.offer(1);
  const waited = select({ got: taking(later) }).then(() => log.push("waited"));
  const atOnce = (later.offer(1), select({ got: taking(there) }).then(() => log.push("at once")));
  await Promise.all([waited, atOnce]);
  expect(log).toEqual(["waited", "at once"]);
});

it("C042: resumes in the async context of its caller", async () => {
  const [jobs, context] = [new Queue<string>(1), new AsyncLocalStorage<string>()];
  const selected = context.run("caller", async () => [(await select({ job: taking(jobs) })).value, context.getStore()]);
  context.run("producer", () => jobs.offer("job"));
  expect(await selected).toEqual(["job", "caller"]);
});

it("refuses what is no clause or nothing to wait for, and joins no line", async () => {
  const jobs = new Queue<number>(1);
  await expect(select({})).rejects.toThrow("clauses must have one at least");
  await expect(select({ off: undefined })).rejects.toThrow(RangeError);
  const taken = jobs.take();
  await expect(select({ job: taken as never, other: taking(jobs) })).rejects.toThrow(TypeError);
  expect(() => elapsing(-1)).toThrow(RangeError);
  expect(() => aborting("signal" as never)).toThrow(TypeError);
  expect(jobs.stats().waitingConsumers).toBe(1);
});

it("leaves every line when a clause throws while the others wait already", async () => {
  const jobs = new Queue<number>(1);
  const failure = new Error("a signal of somebody else's");
  const { signal } = new AbortController();
  signal.addEventListener = () => {
    throw failure;
  };
  await expect(select({ job: taking(jobs), stop: aborting(signal) }, { biased: true })).rejects.toBe(failure);
  expect(waiting(jobs)).toBe(0);
});

it("sees what the code of another clause has done meanwhile", async () => {
  for (const act of ["put", "close", "abort"] as const) {
    const jobs = new Queue<number>(1);
    const call = new AbortController();
    const whenFull = (): "wait" => {
      if (act === "put") jobs.offer(7);
      else if (act === "close") jobs.close();
      else call.abort("enough");
      return "wait";
    };
    const full = new Queue<number>(1, { whenFull });
    full.offer(0);
    const selected = select({ job: taking(jobs), sent: putting(full, 1) }, { biased: true, signal: call.signal });
    if (act === "put") expect(await selected).toEqual({ key: "job", value: 7 });
    else if (act === "close") await expect(selected).rejects.toThrow(ClosedError);
    else await expect(selected).rejects.toBe("enough");
    expect([waiting(jobs), waiting(full), jobs.size]).toEqual([0, 0, 0]);
  }
});

it("lets a timeout lose against what happens in the same turn", async () => {
  const clock = new VirtualClock();
  const jobs = new Queue<string>(1, { clock });
  const selected = select({ job: taking(jobs) }, { clock, timeoutMs: 10 });
  clock.setTimer(10, { onTimer: () => jobs.offer("in time") });
  await clock.advance(10);
  expect(await selected).toEqual({ key: "job", value: "in time" });
  const refused = select({ job: taking(jobs) }, { clock, timeoutMs: 10 }).catch((error: unknown) => error);
  await clock.advance(10);
  expect(await refused).toBeInstanceOf(TimeoutError);
});

it("lets each item go one way under any plan of selects, puts, takes, aborts and ends", () => {
  const step = fc.constantFrom("select", "select", "select", "put", "take", "offer", "poll", "abort", "10 ms", "close");
  const plans = fc.asyncProperty(fc.nat(2), fc.nat(), fc.array(step, { maxLength: 40 }), play);
  return fc.assert(plans, { numRuns: 1_000 });
});

async function play(capacity: number, seed: number, plan: readonly string[]): Promise<void> {
  const clock = new VirtualClock();
  const random = seededRandom(seed);
  const queues = [new Queue<number>(capacity, { clock }), new Queue<number>(1, { clock })] as const;
  const [brought, ways]: [number[], number[]] = [[], []];
  let call = new AbortController();
  for (const [id, step] of [...plan, "abort"].entries()) {
    const { signal } = call;
    const queue = queues[random() < 0.5 ? 0 : 1];
    const isIn = (was: unknown): unknown => was === true && brought.push(id);
    const got = (item: number): unknown => ways.push(item);
    if (step === "select") {
      const [a, b] = queues;
      const clauses = { a: taking(a), b: taking(b), sent: putting(queue, id), late: elapsing(15) };
      void select(clauses, { signal, random, clock }).then(
        ({ key, value }) => (key === "sent" ? isIn(value) : value !== undefined && got(value)),
        () => {},
      );
    } else if (step === "put") void queue.put(id, { signal }).then(isIn, () => {});
    else if (step === "take") void queue.take({ signal }).then(got, () => {});
    else if (step === "offer") isIn(queue.offer(id));
    else if (step === "poll") queue.pollBatch(1).forEach(got);
    else if (step === "abort") call = (call.abort(), new AbortController());
    else if (step === "close") queue.close();
    else await clock.advance(10);
    for (const { stats } of [queues[0], queues[1]].map((each) => ({ stats: each.stats() })))
      expect(stats.size > 0 && stats.waitingConsumers > 0).toBe(false);
  }
  await clock.advance(100);
  expect(clock.timers).toBe(0);
  for (const queue of queues) ways.push(...queue.pollBatch(9));
  expect(ways.toSorted((x, y) => x - y)).toEqual(brought.toSorted((x, y) => x - y));
  for (const queue of queues) expect(waiting(queue)).toBe(0);
}

function waiting(queue: { stats(): QueueStats }): number {
  const { waitingConsumers, waitingProducers } = queue.stats();
  return waitingConsumers + waitingProducers;
}
