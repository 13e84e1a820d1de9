import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { NotHeldError, TimeoutError } from "../errors.ts";
import { namedEntries } from "../internal/names.ts";
import { abortCases, type AbortSubject } from "../testing/abort-suite.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Condition } from "./condition.ts";
import { Mutex } from "./mutex.ts";
import type { Permit } from "./permit.ts";

/** Takes one of what there is, as soon as there is one. */
type Take = (condition: Condition, guard: Permit, isThere: () => boolean, options: object) => Promise<void>;

function subject(name: string, take: Take): AbortSubject {
  return {
    name,
    open(clock) {
      const mutex = new Mutex({ clock });
      const condition = new Condition(mutex, { clock });
      let items = 0;
      return {
        async call(options) {
          const guard = mutex.tryAcquire();
          if (guard === undefined) throw new Error("somebody kept the mutex");
          try {
            await take(condition, guard, () => items > 0, options);
            expect(mutex.isHeldBy(guard)).toBe(true);
            items -= 1;
          } finally {
            guard.release();
          }
        },
        satisfy() {
          items += 1;
          condition.signal();
        },
        state: () => ({ items, waiting: condition.waiting }),
        giveBack: () => void (items += 1),
      };
    },
  };
}

const subjects = [
  subject("Condition.wait", async (condition, guard, isThere, options) => {
    if (isThere()) return condition.waitFor(guard, isThere, options); // as it looks at the options
    while (!isThere()) await condition.wait(guard, options);
  }),
  subject("Condition.waitFor", (condition, guard, isThere, options) => condition.waitFor(guard, isThere, options)),
];
for (const { title, run } of subjects.flatMap((each) => abortCases(each))) it(title, run);

it("lets go of the mutex while it waits, and has it again when it has been woken", async () => {
  const { mutex, condition } = make();
  const guard = await mutex.acquire();
  const woken = condition.wait(guard);
  expect([mutex.locked, guard.isHeld, condition.waiting]).toEqual([false, false, 1]);
  await mutex.run(() => condition.signal());
  await woken;
  expect([mutex.isHeldBy(guard), condition.waiting]).toEqual([true, 0]);
  guard.release();
  expect(mutex.locked).toBe(false);
});

it("stands in the line of the mutex from the signal on: behind who is there, before who comes", async () => {
  const { mutex, condition } = make();
  const log: string[] = [];
  const waiter = mutex.run(({ guard }) => condition.wait(guard).then(() => log.push("woken")));
  const holder = await mutex.acquire();
  const before = mutex.run(() => log.push("before"));
  condition.signal();
  const after = mutex.run(() => log.push("after"));
  expect([log, mutex.waiting]).toEqual([[], 3]);
  holder.release();
  await Promise.all([waiter, before, after]);
  expect(log).toEqual(["before", "woken", "after"]);
});

it("wakes by a signal who has waited longest, by a broadcast all, in the order they came", async () => {
  const { mutex, condition } = make();
  const log: string[] = [];
  const waiters = ["a", "b", "c", "d"].map((name) =>
    mutex.run(({ guard }) => condition.wait(guard).then(() => log.push(name))),
  );
  await turn();
  expect(condition.waiting).toBe(4);
  await mutex.run(() => condition.signal());
  await waiters[0];
  expect([log, condition.waiting]).toEqual([["a"], 3]);
  await mutex.run(() => condition.broadcast());
  await Promise.all(waiters);
  expect([log, mutex.locked]).toEqual([["a", "b", "c", "d"], false]);
});

it("forgets a signal that nobody waits for", async () => {
  const { mutex, condition } = make();
  condition.signal();
  condition.broadcast();
  const guard = await mutex.acquire();
  const woken = condition.wait(guard);
  await turn();
  expect([condition.waiting, condition.stats()]).toMatchObject([1, { unheard: 2, woken: 0 }]);
  condition.signal();
  await woken;
});

it("A02: waits until its predicate holds, whatever wakes it, where a bare wait reads what is not there", async () => {
  const { mutex, condition: full } = make();
  const buffer: string[] = [];
  const consume = (): Promise<string | undefined> =>
    mutex.run(async ({ guard }) => {
      await full.waitFor(guard, () => buffer.length > 0);
      return buffer.shift();
    });
  const careless = (): Promise<string | undefined> =>
    mutex.run(async ({ guard }) => {
      if (buffer.length === 0) await full.wait(guard);
      return buffer.shift();
    });
  const taken = [careless(), consume()];
  await turn();
  full.broadcast(); // in vain
  expect(await taken[0]).toBeUndefined();
  expect(full.waiting).toBe(1);
  await mutex.run(() => {
    buffer.push("item");
    full.signal();
  });
  expect(await taken[1]).toBe("item");
});

it("needs no signal for what holds already, and keeps the mutex", async () => {
  const { mutex, condition } = make();
  const guard = await mutex.acquire();
  await condition.waitFor(guard, () => true, { timeoutMs: 0 });
  expect([mutex.isHeldBy(guard), condition.stats()]).toMatchObject([true, { woken: 0 }]);
});

it("wakes by a signal the first whose predicate holds, and nobody in vain", async () => {
  const { mutex, condition } = make();
  let level = 0;
  const log: number[] = [];
  const waiters = [3, 1, 2].map((wanted) =>
    mutex.run(({ guard }) => condition.waitFor(guard, () => level >= wanted).then(() => log.push(wanted))),
  );
  await turn();
  level = 2;
  condition.signal();
  await waiters[1];
  expect([log, condition.waiting]).toEqual([[1], 2]);
  condition.broadcast();
  await waiters[2];
  expect([log, condition.waiting, condition.stats().woken]).toEqual([[1, 2], 1, 2]);
  level = 3;
  condition.signal();
  await Promise.all(waiters);
  expect(log).toEqual([1, 2, 3]);
});

it("C17: tests the predicate again with the mutex held, and waits on if it holds no more", async () => {
  const { mutex, condition } = make();
  let items = 0;
  const consumer = mutex.run(({ guard }) => condition.waitFor(guard, () => items > 0).then(() => (items -= 1)));
  const holder = await mutex.acquire();
  items = 1;
  condition.signal();
  const thief = mutex.run(() => (items -= 1), { priority: 1 }); // goes before who was woken
  holder.release();
  await thief;
  await turn();
  expect([items, condition.waiting, mutex.locked]).toEqual([0, 1, false]);
  items = 1;
  condition.signal();
  await consumer;
  expect(items).toBe(0);
});

it("passes a signal on that its waiter cannot use any more", async () => {
  const { mutex, condition } = make();
  let [left, right] = [0, 0];
  const first = mutex.run(({ guard }) => condition.waitFor(guard, () => left > 0));
  const second = mutex.run(({ guard }) => condition.waitFor(guard, () => right > 0));
  const holder = await mutex.acquire();
  left = 1;
  condition.signal(); // for the first
  [left, right] = [0, 1];
  holder.release();
  await second; // or it would wait for good, though what it waits for is there
  left = 1;
  condition.signal();
  await first;
  expect(condition.stats().woken).toBe(3);
});

it("passes no broadcast on, which all have heard who waited for it", async () => {
  const { mutex, condition } = make();
  let items = 0;
  const first = mutex.run(({ guard }) => condition.waitFor(guard, () => items > 0));
  const holder = await mutex.acquire();
  const late = mutex.run(({ guard }) => condition.wait(guard));
  items = 1;
  condition.broadcast(); // the first comes back behind the late one
  items = 0;
  holder.release();
  await turn();
  expect([condition.waiting, condition.stats().woken]).toEqual([2, 1]);
  items = 1;
  condition.broadcast();
  await Promise.all([first, late]);
});

it("C18: several conditions of one mutex wake their own side only", async () => {
  const mutex = new Mutex();
  const [notEmpty, notFull] = [new Condition(mutex), new Condition(mutex)];
  const buffer: number[] = [];
  const taken: (number | undefined)[] = [];
  const put = (item: number): Promise<void> =>
    mutex.run(async ({ guard }) => {
      await notFull.waitFor(guard, () => buffer.length < 2);
      buffer.push(item);
      notEmpty.signal();
    });
  const take = (): Promise<void> =>
    mutex.run(async ({ guard }) => {
      await notEmpty.waitFor(guard, () => buffer.length > 0);
      taken.push(buffer.shift());
      notFull.signal();
    });
  const items = Array.from({ length: 100 }, (_, item) => item);
  await Promise.all([...items.map(put), ...items.map(take)]);
  expect(taken).toEqual(items);
  expect([notEmpty.waiting, notFull.waiting, mutex.locked]).toEqual([0, 0, false]);
});

it("C16: waits for what is no resource, such as a shutdown", async () => {
  const { mutex, condition } = make();
  let stopping = false;
  const sweeper = mutex.run(({ guard }) => condition.waitFor(guard, () => stopping).then(() => "swept"));
  await mutex.run(() => {
    stopping = true;
    condition.broadcast();
  });
  expect(await sweeper).toBe("swept");
});

it("rejects by a predicate that throws, or is no predicate, its own wait only, with the mutex held", async () => {
  const { mutex, condition } = make();
  const failure = new Error("bad predicate");
  let asked = false;
  const throwing = mutex.run(({ guard }) =>
    condition
      .waitFor(guard, () => {
        if (asked) throw failure;
        return false;
      })
      .catch((error: unknown) => [error, mutex.isHeldBy(guard)]),
  );
  const promising = mutex.run(({ guard }) => condition.waitFor(guard, (() => Promise.resolve(false)) as never));
  await expect(promising).rejects.toThrow("predicate must return a boolean, got object");
  const other = mutex.run(({ guard }) => condition.waitFor(guard, () => asked));
  await turn();
  asked = true;
  condition.signal();
  expect([await throwing, await other]).toEqual([[failure, true], undefined]);
  expect([condition.waiting, mutex.locked]).toEqual([0, false]);
});

it("goes on to the next when a predicate ends waits of others, its own too", async () => {
  const { mutex, condition } = make();
  const call = new AbortController();
  let asked = false;
  const wait = (predicate: () => boolean, signal?: AbortSignal): Promise<unknown> =>
    mutex.run(({ guard }) => condition.waitFor(guard, predicate, { signal }));
  const ending = wait(() => {
    if (asked) call.abort("over");
    return asked;
  }, call.signal);
  const ended = wait(() => asked, call.signal);
  const next = wait(() => asked);
  await turn();
  asked = true;
  condition.signal();
  expect(await Promise.allSettled([ending, ended, next])).toMatchObject([
    { reason: "over" },
    { reason: "over" },
    { status: "fulfilled" },
  ]);
});

it("has the mutex again before it rejects, by abort or timeout, however long that takes", async () => {
  const clock = new VirtualClock();
  const { mutex, condition } = make(clock);
  const call = new AbortController();
  const outcomes: unknown[] = [];
  for (const options of [{ signal: call.signal, timeoutMs: 90 }, { timeoutMs: 50 }]) {
    const guard = await mutex.acquire();
    const held = (error: unknown): unknown => outcomes.push([error, mutex.isHeldBy(guard)]) && guard.release();
    condition.wait(guard, options).catch(held);
  }
  const holder = await mutex.acquire();
  call.abort("gone");
  expect([condition.waiting, mutex.waiting, getEventListeners(call.signal, "abort").length]).toEqual([1, 1, 0]);
  await clock.advance(500);
  condition.signal();
  expect([outcomes, condition.waiting, mutex.waiting, clock.timers]).toEqual([[], 0, 2, 0]);
  expect(condition.stats()).toMatchObject({ woken: 0, unheard: 1 });
  holder.release();
  await turn();
  expect(outcomes).toMatchObject([
    ["gone", true],
    [{ code: "TIMEOUT", timeoutMs: 50 }, true],
  ]);
  expect([mutex.locked, mutex.waiting]).toEqual([false, 0]);
});

it("is aborted no more once it has been woken, so that no signal is lost", async () => {
  const clock = new VirtualClock();
  const { mutex, condition } = make(clock);
  const call = new AbortController();
  const guard = await mutex.acquire();
  const woken = condition.wait(guard, { signal: call.signal, timeoutMs: 50 });
  const holder = await mutex.acquire();
  condition.signal();
  call.abort("late");
  await clock.advance(50);
  holder.release();
  await woken;
  expect([mutex.isHeldBy(guard), condition.stats()]).toMatchObject([true, { woken: 1, aborted: 0, timedOut: 0 }]);
});

it("signals past one that has aborted, also in the midst of that", async () => {
  const { mutex, condition } = make();
  const call = new AbortController();
  call.signal.addEventListener("abort", () => condition.signal());
  const aborted = mutex.run(({ guard }) => condition.wait(guard, { signal: call.signal }));
  const next = mutex.run(({ guard }) => condition.wait(guard));
  await turn();
  call.abort("gone");
  expect(await Promise.allSettled([aborted, next])).toMatchObject([{ reason: "gone" }, { status: "fulfilled" }]);
});

it("passes on the signal of a waiter whose predicate holds no more and whose signal has aborted", async () => {
  const { mutex, condition } = make();
  const call = new AbortController();
  let [left, right] = [0, 0];
  const first = mutex.run(({ guard }) => condition.waitFor(guard, () => left > 0, { signal: call.signal }));
  const second = mutex.run(({ guard }) => condition.waitFor(guard, () => right > 0));
  const holder = await mutex.acquire();
  left = 1;
  condition.signal();
  call.abort("gone");
  [left, right] = [0, 1];
  holder.release();
  expect(await Promise.allSettled([first, second])).toMatchObject([{ reason: "gone" }, { status: "fulfilled" }]);
});

it("limits all of a waitFor, however often it is woken in vain, and tells that limit", async () => {
  const clock = new VirtualClock();
  const { mutex, condition } = make(clock);
  let lure = false;
  const outcome = mutex
    .run(({ guard }) => condition.waitFor(guard, () => lure, { timeoutMs: 100 }))
    .catch((error: unknown) => [error, clock.now()]);
  for (let times = 0; times < 3; times += 1) {
    await clock.advance(30);
    lure = true;
    condition.signal();
    lure = false;
  }
  await clock.advance(9);
  expect(condition.waiting).toBe(1);
  await clock.advance(1);
  expect(await outcome).toEqual([new TimeoutError(100), 100]);
});

it("lets go of nothing when it is given the wrong guard, bad options, or would not wait", async () => {
  const { mutex, condition } = make();
  const [guard, other] = [await mutex.acquire(), await new Mutex().acquire()];
  await expect(condition.wait(other)).rejects.toThrow(NotHeldError);
  await expect(condition.waitFor(other, () => true)).rejects.toThrow("the mutex is not held");
  for (const bad of [{ timeoutMs: -1 }, { signal: {} }, null]) {
    await expect(condition.wait(guard, bad as object)).rejects.toThrow();
    await expect(condition.waitFor(guard, () => false, bad as object)).rejects.toThrow();
  }
  await expect(condition.wait(guard, { timeoutMs: 0 })).rejects.toThrow(TimeoutError);
  await expect(condition.waitFor(guard, () => false, { timeoutMs: 0 })).rejects.toThrow(TimeoutError);
  expect([mutex.isHeldBy(guard), condition.waiting]).toEqual([true, 0]);
  const waiting = condition.wait(guard);
  await expect(condition.wait(guard)).rejects.toThrow(NotHeldError); // it has let go of it
  condition.signal();
  await waiting;
  guard.release();
  await expect(condition.wait(guard)).rejects.toThrow(NotHeldError);
});

it("does not lock the mutex again for a guard that was released while it waited, and hands its signal on", async () => {
  const { mutex, condition } = make();
  const guard = await mutex.acquire();
  const gone = expect(condition.wait(guard)).rejects.toThrow(NotHeldError);
  const call = new AbortController();
  const other = await mutex.acquire();
  const aborted = expect(condition.wait(other, { signal: call.signal })).rejects.toBe("gave up");
  const next = mutex.run((held) => condition.wait(held.guard));
  guard.release(); // as in a `finally` after a race that the wait has lost
  other.release();
  call.abort("gave up");
  condition.signal();
  await Promise.all([gone, aborted, next]);
  expect([guard.isHeld, other.isHeld, mutex.locked, condition.waiting]).toEqual([false, false, false, 0]);
});

it("does not let go of a mutex that its own predicate has released, and somebody else has locked", async () => {
  const { mutex, condition } = make();
  const guard = await mutex.acquire();
  const isThere = (): boolean => {
    guard.release();
    return false;
  };
  await expect(condition.waitFor(guard, isThere)).rejects.toThrow(NotHeldError);
  expect([mutex.locked, condition.waiting]).toEqual([false, 0]);
});

it("asks no predicate of a wait that another predicate has ended", async () => {
  const { mutex, condition } = make();
  const call = new AbortController();
  const asked: string[] = [];
  const outcomes = Promise.allSettled([
    mutex.run(({ guard }) => condition.waitFor(guard, () => asked.push("first") > 2 && (call.abort("ended"), true))),
    mutex.run(({ guard }) => condition.waitFor(guard, () => asked.push("second") > 9, { signal: call.signal })),
  ]);
  await turn();
  expect(asked).toEqual(["first", "second"]);
  condition.broadcast();
  expect(asked).toEqual(["first", "second", "first"]);
  expect(await outcomes).toMatchObject([{ status: "fulfilled" }, { reason: "ended" }]);
});

it("refuses what is no mutex", () => {
  expect(() => new Condition(undefined as unknown as Mutex)).toThrow("mutex must be a Mutex, got undefined");
});

it("comes back to a mutex that was closed, or whose line is full, as one who never left", async () => {
  const mutex = new Mutex({ maxWaiting: 1 });
  const condition = new Condition(mutex);
  const guards = [await mutex.acquire()];
  const waits = [condition.wait(guards[0] as Permit)];
  guards.push(await mutex.acquire());
  waits.push(condition.wait(guards[1] as Permit));
  const holder = await mutex.acquire();
  const outsider = mutex.acquire();
  condition.broadcast();
  mutex.close();
  await expect(outsider).rejects.toMatchObject({ code: "CLOSED" });
  expect(mutex.waiting).toBe(2);
  holder.release();
  for (const [id, wait] of waits.entries()) {
    await wait;
    expect(mutex.isHeldBy(guards[id] as Permit)).toBe(true);
    guards[id]?.release();
  }
  expect([mutex.locked, mutex.tryAcquire()]).toEqual([false, undefined]);
});

it("tells by name who waits and since when, and what came of signals and waits", async () => {
  const clock = new VirtualClock();
  const mutex = new Mutex({ clock });
  const condition = new Condition(mutex, { name: "not empty", clock });
  const call = new AbortController();
  const options = [{}, { timeoutMs: 10 }, { signal: call.signal }];
  const waits = options.map((each) => mutex.run(({ guard }) => condition.wait(guard, each)));
  const settled = Promise.allSettled(waits);
  await clock.advance(30);
  call.abort();
  expect(condition.stats()).toEqual({
    waiting: 1,
    oldestWaitMs: 30,
    woken: 0,
    unheard: 0,
    timedOut: 1,
    aborted: 1,
  });
  condition.signal();
  await settled;
  expect(condition.stats()).toMatchObject({ waiting: 0, oldestWaitMs: 0, woken: 1 });
  const entry = namedEntries().find(({ name }) => name === "not empty");
  expect([entry?.kind, entry?.target.deref()]).toEqual(["condition", condition]);
});

function make(clock = new VirtualClock()): { readonly mutex: Mutex; readonly condition: Condition } {
  const mutex = new Mutex({ clock });
  return { mutex, condition: new Condition(mutex, { clock }) };
}
