import { AsyncLocalStorage } from "node:async_hooks";
import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { sleep } from "../clock/sleep.ts";
import { ClosedError, TimeoutError } from "../errors.ts";
import { Queue } from "../flow/queue.ts";
import { namedEntries } from "../internal/names.ts";
import { abortCases } from "../testing/abort-suite.ts";
import { unhandledIn } from "../testing/unhandled.stage.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { collectAll, failFast, firstSuccess, settleAll } from "./joiner.ts";
import type { TaskGroupContext } from "./task-group-options.ts";
import { TaskGroup } from "./task-group.ts";
import { ended, outcomeOf } from "./task-group.stage.ts";

const failure = new Error("first");

it("F05.3: the first failure cancels its siblings, which are waited for, and is what join rejects with", async () => {
  const group = new TaskGroup();
  const seen: unknown[] = [];
  const end = Promise.withResolvers<void>();
  void group.run(async ({ signal }) => {
    await ended(signal).catch((reason) => seen.push(reason));
    await end.promise; // as who has to clean up
    seen.push("cleaned up");
  });
  void group.run(() => Promise.reject(failure));
  const joined = group.join().catch((reason: unknown) => seen.push(reason));
  await turn();
  expect(seen).toEqual([failure]);
  end.resolve();
  await joined;
  expect(seen).toEqual([failure, "cleaned up", failure]);
});

it("A07: no call is begun after the first failure, and no later rejection is unhandled", async () => {
  const late: unknown[] = [];
  const unhandled = await unhandledIn(async () => {
    const group = new TaskGroup({ concurrency: 2, onLateError: (error) => late.push(error) });
    let calls = 0;
    for (let call = 0; call < 6; call += 1) {
      void group.run(async () => {
        calls += 1;
        await turn();
        throw new Error(`call ${call}`);
      });
    }
    await expect(group.join()).rejects.toThrow("call 0");
    expect(calls).toBe(2);
    expect(group.stats()).toMatchObject({ failed: 2, lateErrors: 1, running: 0, waiting: 0 });
  });
  expect([unhandled, late]).toMatchObject([[], [{ message: "call 1" }]]);
});

it("waits for a child that ignores its signal, however long that takes", async () => {
  const clock = new VirtualClock();
  const parent = new AbortController();
  const group = new TaskGroup({ timeoutMs: 60_000, signal: parent.signal, clock });
  void group.run(() => sleep(10_000, { clock }));
  void group.run(() => Promise.reject(failure));
  const joined = outcomeOf(group.join());
  await clock.advance(9_999);
  expect(joined.status).toBe("pending");
  expect(group.stats()).toMatchObject({ running: 1, oldestRunMs: 9_999, state: "cancelled" });
  expect([clock.timers, getEventListeners(parent.signal, "abort").length]).toEqual([1, 0]); // that of the sleep
  await clock.advance(1);
  expect(joined).toMatchObject({ status: "rejected", value: failure });
});

it("resolves when the last child has succeeded, and at once without children", async () => {
  await expect(new TaskGroup().join()).resolves.toBeUndefined();
  const group = new TaskGroup();
  const values = [group.run(() => 1), group.run(() => turn().then(() => "two"))];
  expect(await group.join()).toBeUndefined();
  expect(await Promise.all(values)).toEqual([1, "two"]);
  expect(group.signal.aborted).toBe(false);
});

it("Q05: join waits until N tasks have finished, whatever their order", async () => {
  const group = new TaskGroup();
  const ends = Array.from({ length: 5 }, () => Promise.withResolvers<void>());
  for (const { promise } of ends) void group.run(() => promise);
  const joined = outcomeOf(group.join());
  for (const last of [3, 0, 4, 1]) {
    ends[last]?.resolve();
    await turn();
    expect(joined.status).toBe("pending");
  }
  ends[2]?.resolve();
  await turn();
  expect(joined.status).toBe("fulfilled");
});

it("calls fn in the turn of run when a child may start, else in the order of the calls", async () => {
  const group = new TaskGroup({ concurrency: 1 });
  const started: number[] = [];
  const ends = [0, 1, 2].map(() => Promise.withResolvers<void>());
  for (const [index, { promise }] of ends.entries()) {
    void group.run(() => {
      started.push(index);
      return promise;
    });
  }
  expect([started, group.stats().running, group.stats().waiting]).toEqual([[0], 1, 2]);
  ends[0]?.resolve();
  await turn();
  expect(started).toEqual([0, 1]);
  for (const { resolve } of ends) resolve();
  await group.join();
  expect(started).toEqual([0, 1, 2]);
});

it("C043: with a concurrency the limit holds after a failure, and collectAll attempts all and reports the one error", async () => {
  const clock = new VirtualClock();
  const group = new TaskGroup<number, number[]>({ concurrency: 5, joiner: collectAll<number>(), clock });
  let [inside, most, calls] = [0, 0, 0];
  for (let id = 1; id <= 50; id += 1) {
    void group.run(async () => {
      most = Math.max(most, (inside += 1));
      calls += 1;
      await sleep(20, { clock });
      inside -= 1;
      if (id === 3) throw failure;
      return id;
    });
  }
  const joined = outcomeOf(group.join());
  await clock.advance(200);
  expect([most, calls]).toEqual([5, 50]);
  expect(joined.value).toBeInstanceOf(AggregateError);
  expect((joined.value as AggregateError).errors).toEqual([failure]);
});

it("starts a child now or not at all with a timeoutMs of 0, and one that was not started is no failure of the group", async () => {
  const group = new TaskGroup({ concurrency: 1 });
  const end = Promise.withResolvers<void>();
  expect(await group.run(() => 7, { timeoutMs: 0 })).toBe(7);
  void group.run(() => end.promise, { timeoutMs: 0 });
  await expect(group.run(() => 8, { timeoutMs: 0 })).rejects.toThrow(TimeoutError);
  end.resolve();
  await group.join();
  expect(group.stats()).toMatchObject({ fulfilled: 2, failed: 0, timedOut: 1 });
});

it("lets children start children until the last has ended", async () => {
  const group = new TaskGroup();
  const log: string[] = [];
  void group.run(async () => {
    await turn();
    void group.run(async () => {
      await turn();
      log.push("grandchild");
    });
    log.push("child");
  });
  await group.join();
  expect(log).toEqual(["child", "grandchild"]);
});

it("refuses a child with ClosedError once it has ended", async () => {
  const group = new TaskGroup();
  await group.join();
  let called = false;
  await expect(group.run(() => void (called = true))).rejects.toThrow(ClosedError);
  expect([called, group.stats().state]).toEqual([false, "ended"]);
});

it("starts nothing once it is cancelled, and rejects with its reason, at which nobody has to look", async () => {
  const unhandled = await unhandledIn(async () => {
    const group = new TaskGroup({ concurrency: 1 });
    let calls = 0;
    void group.run(({ signal }) => ended(signal));
    const waiting = group.run(() => void (calls += 1));
    void group.run(() => void (calls += 1));
    group.abort(failure);
    expect(group.stats().waiting).toBe(0);
    await expect(waiting).rejects.toBe(failure);
    await expect(group.run(() => void (calls += 1))).rejects.toBe(failure);
    void group.run(() => void (calls += 1));
    await expect(group.join()).rejects.toBe(failure);
    expect(calls).toBe(0);
  });
  expect(unhandled).toEqual([]);
});

it("does not silence a refusal that nobody else tells of", async () => {
  const unhandled = await unhandledIn(async () => {
    const group = new TaskGroup();
    await group.join();
    void group.run(() => 1);
  });
  expect(unhandled).toMatchObject([{ code: "CLOSED" }]);
});

it("takes a child that its own signal ended for cancelled, and goes on with the others", async () => {
  const group = new TaskGroup();
  const call = new AbortController();
  const [one, other] = [Promise.withResolvers<string>(), new AbortController().signal];
  const called = group.run(({ signal }) => ended(signal), { signal: call.signal });
  const stays = group.run(() => one.promise, { signal: other });
  call.abort(new Error("not needed"));
  await expect(called).rejects.toBe(call.signal.reason);
  expect(group.signal.aborted).toBe(false);
  one.resolve("still wanted");
  expect(await stays).toBe("still wanted");
  await group.join();
  expect(group.stats()).toMatchObject({ fulfilled: 1, cancelled: 1, failed: 0 });
  expect([call.signal, other, group.signal].map((signal) => getEventListeners(signal, "abort").length)).toEqual([
    0, 0, 0,
  ]);
});

it("leaves nobody to look at a child that its own signal kept from starting, as at one that it ended", async () => {
  const unhandled = await unhandledIn(async () => {
    const group = new TaskGroup({ concurrency: 1 });
    const call = new AbortController();
    const first = Promise.withResolvers<void>();
    void group.run(() => first.promise);
    void group.run(() => 1, { signal: call.signal });
    void group.run(() => 1, { signal: call.signal });
    first.resolve();
    while (group.stats().waiting === 2) await Promise.resolve(); // one is granted, and has not begun
    call.abort(failure);
    void group.run(() => 1, { signal: call.signal });
    await group.join();
    expect(group.stats()).toMatchObject({ fulfilled: 1, failed: 0, aborted: 1 });
  });
  expect(unhandled).toEqual([]);
});

it("takes an AbortError after an abort for cancellation, and one out of nowhere for a failure", async () => {
  const error = Object.assign(new Error("aborted"), { name: "AbortError" });
  const cancelled = new TaskGroup({ onLateError: () => expect.unreachable() });
  void cancelled.run(({ signal }) => ended(signal).catch(() => Promise.reject(error)));
  void cancelled.run(() => Promise.reject(failure));
  await expect(cancelled.join()).rejects.toBe(failure);
  expect(cancelled.stats()).toMatchObject({ cancelled: 1, failed: 1 });
  const foreign = new TaskGroup({ onLateError: () => expect.unreachable() });
  const elsewhere: unknown = runInNewContext("Object.assign(new Error(), { name: 'AbortError' })");
  void foreign.run(({ signal }) => ended(signal).catch(() => Promise.reject(elsewhere)));
  foreign.abort(failure);
  await expect(foreign.join()).rejects.toBe(failure);
  const failed = new TaskGroup();
  void failed.run(() => Promise.reject(error));
  await expect(failed.join()).rejects.toBe(error);
});

it("goes on when onLateError throws, whose error is an unhandled rejection", async () => {
  const broken = new Error("broken sink");
  const unhandled = await unhandledIn(async () => {
    const group = new TaskGroup({
      onLateError() {
        throw broken;
      },
    });
    void group.run(() => Promise.reject(failure));
    void group.run(() => turn().then(() => Promise.reject(new Error("late"))));
    await expect(group.join()).rejects.toBe(failure);
  });
  expect(unhandled).toEqual([broken]);
});

it("tells the sink of failures that an abort or a broken joiner kept join from telling, but for those that were looked at", async () => {
  const [heard, broken]: [unknown[], Error] = [[], new Error("broken joiner")];
  const onLateError = (error: unknown): unknown => heard.push(error);
  const [one, other] = [true, false].map((isJoined) => {
    const group = new TaskGroup<unknown, unknown[]>({ joiner: collectAll(), onLateError });
    void group.run(({ signal }) => ended(signal));
    if (isJoined) group.join().catch(() => {});
    void group.run(() => Promise.reject(failure));
    group.run(() => Promise.reject(new Error("looked at"))).catch(() => {});
    return group;
  });
  await turn();
  expect(heard).toEqual([]);
  for (const group of [one, other]) {
    group?.abort(new Error("abort"));
    await expect(group?.join()).rejects.toThrow("abort");
    expect(group?.stats()).toMatchObject({ failed: 2, lateErrors: 1 });
  }
  const onOutcome = (): never => {
    throw broken;
  };
  const third = new TaskGroup({ joiner: { onOutcome, result() {} }, onLateError });
  void third.run(() => Promise.reject(failure));
  await expect(third.join()).rejects.toBe(broken);
  expect(heard).toEqual([failure, failure, failure]);
});

it("takes a synchronous throw for the failure of its child", async () => {
  const group = new TaskGroup();
  const thrown = group.run(() => {
    throw failure;
  });
  expect(group.signal.reason).toBe(failure);
  await expect(thrown).rejects.toBe(failure);
  await expect(group.join()).rejects.toBe(failure);
});

it("is cancelled with a TimeoutError after its timeoutMs, and leaves no timer, nor when it ends before", async () => {
  const clock = new VirtualClock();
  const group = new TaskGroup({ timeoutMs: 250, clock });
  const child = group.run(({ signal }) => sleep(1_000, { signal, clock }));
  const joined = outcomeOf(group.join());
  await clock.advance(250);
  await expect(child).rejects.toThrow(TimeoutError);
  expect(joined.value).toMatchObject({ code: "TIMEOUT", timeoutMs: 250 });
  const quick = new TaskGroup({ timeoutMs: 250, clock });
  await quick.join();
  await expect(new TaskGroup({ timeoutMs: 0, clock }).run(() => 1)).rejects.toThrow(TimeoutError);
  expect(clock.timers).toBe(0);
});

it("keeps the reason of an abort in the turn of its timeout", async () => {
  const clock = new VirtualClock();
  const parent = new AbortController();
  const group = new TaskGroup({ timeoutMs: 10, signal: parent.signal, clock });
  clock.setTimer(10, { onTimer: () => parent.abort(failure) });
  void group.run(({ signal }) => ended(signal));
  const joined = outcomeOf(group.join());
  await clock.advance(10);
  expect(joined.value).toBe(failure);
});

it("is cancelled with its parent, for the same reason, and ends before it", async () => {
  const log: string[] = [];
  const outer = new TaskGroup();
  void outer.run(async ({ signal }) => {
    const inner = new TaskGroup({ signal });
    void inner.run(({ signal: own }) => ended(own).finally(() => log.push("grandchild")));
    await inner.join().finally(() => log.push("inner"));
  });
  void outer.run(() => turn().then(() => Promise.reject(failure)));
  await outer.join().catch((reason: unknown) => log.push(reason === failure ? "outer" : "other"));
  expect(log).toEqual(["grandchild", "inner", "outer"]);
  expect(outer.stats()).toMatchObject({ failed: 1, cancelled: 1, lateErrors: 0 });
});

it("takes the failure of an inner group for one of the child that joins it", async () => {
  const outer = new TaskGroup<number, unknown>({ joiner: settleAll<number>() });
  const inner = new TaskGroup();
  void outer.run(async () => {
    void inner.run(() => Promise.reject(failure));
    await inner.join();
    return 1;
  });
  void outer.run(() => 2);
  expect(await outer.join()).toEqual([
    { status: "rejected", reason: failure },
    { status: "fulfilled", value: 2 },
  ]);
});

it("F01.2: a group ends with the consumer that dies, instead of leaving the producer to wait for ever", async () => {
  const queue = new Queue<number>(1);
  const group = new TaskGroup();
  void group.run(async ({ signal }) => {
    for (let item = 0; ; item += 1) await queue.put(item, { signal });
  });
  void group.run(async ({ signal }) => {
    await queue.take({ signal });
    throw failure;
  });
  await expect(group.join()).rejects.toBe(failure);
  expect(queue.stats()).toMatchObject({ waitingProducers: 0, waitingConsumers: 0 });
});

it("runs each child in the async context of whoever started it, also one that had to wait", async () => {
  const group = new TaskGroup({ concurrency: 1 });
  const context = new AsyncLocalStorage<number>();
  const seen = async (): Promise<unknown[]> => {
    const before = context.getStore();
    await turn();
    return [before, context.getStore()];
  };
  const runs = [1, 2, 3].map((id) => context.run(id, () => group.run(seen)));
  expect(await Promise.all(runs)).toEqual([1, 2, 3].map((id) => [id, id]));
});

it("passes the slot on when a child is aborted between grant and start, and does not call it", async () => {
  const group = new TaskGroup({ concurrency: 1 });
  const first = Promise.withResolvers<void>();
  const call = new AbortController();
  void group.run(() => first.promise);
  let called = false;
  const aborted = group.run(() => void (called = true), { signal: call.signal });
  const next = group.run(() => "next");
  first.resolve();
  while (group.stats().waiting === 2) await Promise.resolve();
  call.abort(failure);
  await expect(aborted).rejects.toBe(failure);
  expect([await next, called]).toEqual(["next", false]);
  await group.join();
  expect(group.stats()).toMatchObject({ fulfilled: 2, cancelled: 0, failed: 0 });
});

it("fails by a joiner that throws, and cancels the rest", async () => {
  const broken = new Error("broken joiner");
  const group = new TaskGroup({
    joiner: {
      onOutcome(): never {
        throw broken;
      },
      result() {},
    },
  });
  const rest = group.run(({ signal }) => ended(signal));
  expect(await group.run(() => 1)).toBe(1);
  await expect(rest).rejects.toBe(broken);
  await expect(group.join()).rejects.toBe(broken);
});

it("tells a joiner nothing any more once it has what it wants", async () => {
  const told: unknown[] = [];
  const group = new TaskGroup<number, string>({
    joiner: { onOutcome: (outcome, index) => told.push([index, outcome.status]) === 2, result: () => "two" },
  });
  for (const value of [10, 20, 30]) void group.run(() => value);
  expect(await group.join()).toBe("two");
  expect(told).toEqual([
    [0, "fulfilled"],
    [1, "fulfilled"],
  ]);
});

it("refuses bad options and a joiner of another group", () => {
  expect(() => new TaskGroup({ concurrency: 0 })).toThrow("concurrency must be an integer >= 1 or Infinity, got 0");
  expect(() => new TaskGroup({ timeoutMs: -1 })).toThrow("timeoutMs must be >= 0, got -1");
  expect(() => new TaskGroup({ signal: {} as never })).toThrow("signal must be an AbortSignal, got object");
  expect(() => new TaskGroup({ onLateError: 5 as never })).toThrow("onLateError must be a function, got number");
  const twoMethods = "joiner must be an object with onOutcome and result, got";
  expect(() => new TaskGroup({ joiner: failFast as never })).toThrow(`${twoMethods} function`);
  expect(() => new TaskGroup({ joiner: null as never })).toThrow(`${twoMethods} null`);
  for (const half of [{ result() {} }, { onOutcome: () => false }])
    expect(() => new TaskGroup({ joiner: half as never })).toThrow(`${twoMethods} object`);
  const joiner = failFast();
  expect(new TaskGroup({ joiner }).stats().state).toBe("open");
  expect(() => new TaskGroup({ joiner })).toThrow("joiner must be a new one for each group");
});

it("gives the same promise for each join, and ends once", async () => {
  const group = new TaskGroup<number, number>({ joiner: firstSuccess<number>() });
  void group.run(() => 5);
  expect(group.join()).toBe(group.join());
  expect(await group.join()).toBe(5);
  group.abort(new Error("too late"));
  expect(await group.join()).toBe(5);
});

it("tells by name who is inside, who waits, for how long, and what became of the others", async () => {
  const clock = new VirtualClock();
  const group = new TaskGroup<unknown, unknown>({ name: "crawl", concurrency: 2, joiner: settleAll(), clock });
  const call = new AbortController();
  void group.run(() => 1);
  void group.run(() => Promise.reject(failure));
  await turn();
  void group.run(({ signal }) => ended(signal));
  await clock.advance(30);
  void group.run(({ signal }) => ended(signal));
  void group.run(() => 1, { signal: call.signal }).catch(() => {});
  void group.run(() => 1);
  await clock.advance(20);
  call.abort();
  expect(group.stats()).toEqual({
    concurrency: 2,
    running: 2,
    oldestRunMs: 50,
    waiting: 1,
    oldestWaitMs: 20,
    fulfilled: 1,
    failed: 1,
    cancelled: 0,
    lateErrors: 0,
    detached: 0,
    timedOut: 0,
    aborted: 1,
    state: "open",
  });
  const entry = namedEntries().find(({ name }) => name === "crawl");
  expect([entry?.kind, entry?.target.deref()]).toEqual(["task-group", group]);
  group.abort();
  await expect(group.join()).rejects.toThrow("aborted");
});

const subjects = [
  {
    name: "TaskGroup.run",
    open(clock: VirtualClock) {
      const group = new TaskGroup({ concurrency: 1, clock });
      const first = Promise.withResolvers<void>();
      void group.run(() => first.promise);
      return {
        call: (options: object) => group.run(() => {}, options),
        satisfy: () => first.resolve(),
        state: () => ({ running: group.stats().running, waiting: group.stats().waiting }),
      };
    },
  },
  {
    name: "TaskGroup.join, with a parent's signal,",
    lacks: { timeoutMs: "here the group has no limit" },
    open(clock: VirtualClock) {
      const ends: (() => void)[] = [];
      const until = ({ signal }: TaskGroupContext): Promise<void> =>
        new Promise((resolve, reject) => {
          ends.push(resolve);
          signal.addEventListener("abort", () => reject(signal.reason));
        });
      return {
        async call({ signal }: { signal?: AbortSignal }) {
          const group = new TaskGroup({ signal, clock });
          void group.run(until);
          return await group.join();
        },
        satisfy: () => ends.shift()?.(),
        state: () => ({}),
      };
    },
  },
];

for (const { title, run } of subjects.flatMap((subject) => abortCases(subject))) it(title, run);
