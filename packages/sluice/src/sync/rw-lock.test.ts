import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { systemClock } from "../clock/system.ts";
import { ClosedError, NotHeldError, QueueFullError, SelfWaitError, TimeoutError } from "../errors.ts";
import { namedEntries } from "../internal/names.ts";
import { abortCases, type AbortSubject } from "../testing/abort-suite.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { RwLock } from "./rw-lock.ts";

/** A lock that somebody writes under; who comes waits for that one, and for those before it. */
function subject(name: string, call: (lock: RwLock, options: object) => Promise<unknown>): AbortSubject {
  return {
    name,
    open(clock) {
      const lock = new RwLock({ clock });
      const held: (Disposable & { release(): void })[] = [lock.tryWrite()].filter((guard) => guard !== undefined);
      return {
        async call(options) {
          const guard = (await call(lock, options)) as (typeof held)[number] | undefined;
          if (guard !== undefined) held.push(guard);
          return guard;
        },
        satisfy: () => held.shift()?.release(),
        state: () => ({ reading: lock.reading, writing: Number(lock.writing), waiting: lock.waiting }),
        giveBack: (guard) => (guard as (typeof held)[number] | undefined)?.release(),
      };
    },
  };
}

const subjects = [
  subject("RwLock.read", (lock, options) => lock.read(options)),
  subject("RwLock.write", (lock, options) => lock.write(options)),
  subject("RwLock.readers.run", (lock, options) => lock.readers.run(nothing, options)),
  subject("RwLock.writers.run", (lock, options) => lock.writers.run(nothing, options)),
];
for (const { title, run } of subjects.flatMap((each) => abortCases(each))) it(title, run);

it("lets many read at a time, and one write", async () => {
  const lock = new RwLock();
  const readers = [await lock.read(), await lock.read(), lock.tryRead()];
  expect([lock.reading, lock.writing, lock.tryWrite()]).toEqual([3, false, undefined]);
  for (const reader of readers) reader?.release();
  using writer = await lock.write();
  expect([lock.reading, lock.writing, lock.tryRead(), lock.tryWrite()]).toEqual([0, true, undefined, undefined]);
  expect(writer.isHeld).toBe(true);
});

it("lets a writer in when the last reader has gone, and all readers when the writer has", async () => {
  const lock = new RwLock();
  const readers = [await lock.read(), await lock.read()];
  const write = lock.write();
  readers[0]?.release();
  expect([lock.reading, lock.writing, lock.waiting]).toEqual([1, false, 1]);
  readers[1]?.release();
  const writer = await write;
  const reads = [lock.read(), lock.read()];
  expect([lock.reading, lock.waiting]).toEqual([0, 2]);
  writer.release();
  expect([lock.reading, lock.waiting]).toEqual([2, 0]);
  for (const reader of await Promise.all(reads)) reader.release();
});

it("C021: readers behind a writer that gives up get in in the same turn, while another still reads", async () => {
  const lock = new RwLock();
  using _ = await lock.read();
  const call = new AbortController();
  const writer = lock.write({ signal: call.signal });
  const readers = [lock.read(), lock.read()];
  expect([lock.reading, lock.waiting]).toEqual([1, 3]);
  call.abort(new Error("gave up"));
  expect([lock.reading, lock.waiting]).toEqual([3, 0]);
  await expect(writer).rejects.toBe(call.signal.reason);
  for (const reader of await Promise.all(readers)) reader.release();
});

it.each(["fair", "writers"] as const)(
  "C022: a reader behind two writers stays there when the first gives up, preferring %s",
  async (prefer) => {
    const clock = new VirtualClock();
    const lock = new RwLock({ prefer, clock });
    const log: string[] = [];
    const reader = await lock.read();
    const call = new AbortController();
    const first = expect(lock.write({ signal: call.signal })).rejects.toBe("gave up");
    const second = lock.writers.run(async () => {
      log.push("W2");
      await turn();
      log.push(`W2 ends, ${lock.reading} read`);
    });
    const last = lock.readers.run(() => log.push("R2"));
    call.abort("gave up");
    await clock.advance(20);
    expect([log, lock.waiting]).toEqual([[], 2]);
    reader.release();
    await Promise.all([first, second, last]);
    expect(log).toEqual(["W2", "W2 ends, 0 read", "R2"]);
  },
);

it("C023: a steady stream of readers keeps no writer out", async () => {
  const clock = new VirtualClock();
  const lock = new RwLock({ clock });
  const { startedAt, later } = await stream(lock, clock);
  expect(startedAt).toBeLessThanOrEqual(140);
  expect(Math.min(...later)).toBeGreaterThanOrEqual(startedAt);
});

it("F09.1: a writer starves under steady reads where readers are preferred, and by default does not", async () => {
  const [clock, other] = [new VirtualClock(), new VirtualClock()];
  const starving = new RwLock({ prefer: "readers", clock });
  expect((await stream(starving, clock)).startedAt).toBe(Infinity);
  expect(starving.stats()).toMatchObject({ waitingWriters: 1, oldestWaitMs: 900, writes: 0 });
  expect((await stream(new RwLock({ clock: other }), other)).startedAt).toBeLessThan(Infinity);
});

it("F09.2: readers starve in a burst of writes where writers are preferred, and by default take turns", async () => {
  const outcomes = await Promise.all([burst("writers"), burst("fair"), burst("readers")]);
  expect(outcomes).toEqual(["WWWWWWR", "WWRWWWW", "WRWWWWW"]);
});

/** Somebody writes, one more waits, then a reader comes, and four more writers while the first still writes. */
async function burst(prefer: "fair" | "readers" | "writers"): Promise<string> {
  const lock = new RwLock({ prefer });
  let order = "W";
  const first = await lock.write();
  const write = (): Promise<unknown> => lock.writers.run(() => (order += "W"));
  const rest = [write(), lock.readers.run(() => (order += "R")), write(), write(), write(), write()];
  first.release();
  await Promise.all(rest);
  return order;
}

it("F09.3: asking for the write lock in a read section is refused where it is asked to, and waits for itself else", async () => {
  const clock = new VirtualClock();
  const [silent, telling] = [new RwLock({ clock }), new RwLock({ reentry: "throw", clock })];
  const stuck = silent.readers.run(() => silent.writers.run(nothing, { timeoutMs: 100 }));
  const told = telling.readers.run(async () => {
    await turn(); // also when it was asked for in a later turn
    return telling.write();
  });
  const outcome = expect(stuck).rejects.toThrow(TimeoutError);
  await expect(told).rejects.toThrow(SelfWaitError);
  await clock.advance(100);
  await outcome;
  expect([silent, telling].map(({ reading, waiting }) => [reading, waiting])).toEqual([
    [0, 0],
    [0, 0],
  ]);
});

it("C024: a second read inside the first ends though a writer waits: by its limit, or at once where it is asked to", async () => {
  for (const reentry of ["wait", "throw"] as const) {
    const clock = new VirtualClock();
    const lock = new RwLock({ reentry, clock });
    const log: string[] = [];
    const { promise: writerWaits, resolve: tell } = Promise.withResolvers<void>();
    const task = lock.readers.run(async () => {
      await writerWaits;
      await lock.readers.run(nothing, { timeoutMs: 100 }).catch((error: { code: string }) => log.push(error.code));
    });
    const writer = lock.writers.run(() => log.push("W"));
    tell();
    await clock.advance(reentry === "wait" ? 100 : 0);
    await Promise.all([task, writer]);
    expect(log).toEqual([reentry === "wait" ? "TIMEOUT" : "SELF_WAIT", "W"]);
    expect([lock.reading, lock.writing, lock.waiting]).toEqual([0, false, 0]);
  }
});

it("refuses only who would wait for itself: not a read that can be had, nor who left the section", async () => {
  const lock = new RwLock({ reentry: "throw" });
  expect(await lock.readers.run(() => lock.readers.run(() => lock.reading))).toBe(2);
  await expect(lock.writers.run(() => lock.readers.run(nothing))).rejects.toThrow(SelfWaitError);
  expect(await lock.readers.run(() => lock.tryWrite())).toBeUndefined();
  let after: Promise<unknown> | undefined;
  using held = await lock.read();
  await lock.readers.run(() => {
    after = turn().then(() => lock.write());
  });
  await turn();
  held.release();
  await after; // it runs in the context of a section that has ended
});

it("hands a value to those who hold it alone, to readers as it is and to writers to change or replace", async () => {
  const lock = RwLock.of({ hosts: ["a"] });
  await lock.writers.run(({ value }) => void value.hosts.push("b"));
  expect(await lock.readers.run(({ value }) => value.hosts.length)).toBe(2);
  await lock.writers.run(({ replace }) => replace({ hosts: [] }));
  using guard = await lock.read();
  expect(guard.value).toEqual({ hosts: [] });
  const nobody = new RwLock();
  expect(await nobody.readers.run(({ value }) => value)).toBeUndefined();
});

it("F09.5: what a reader was handed it can read no more once it has released", async () => {
  const lock = RwLock.of({ limit: 1 });
  const reader = await lock.read();
  reader.release();
  expect(() => reader.value).toThrow(NotHeldError);
  const writer = await lock.write();
  writer.replace({ limit: 2 });
  writer.release();
  expect(() => writer.replace({ limit: 3 })).toThrow(NotHeldError);
  expect(() => writer.value).toThrow("the write lock is not held");
  expect(() => writer.downgrade()).toThrow(NotHeldError);
  expect(await lock.readers.run(({ value }) => value.limit)).toBe(2);
});

it("gives back once, however often a guard is released", async () => {
  const lock = new RwLock();
  const [first, second] = [await lock.read(), await lock.read()];
  for (let times = 0; times < 3; times += 1) first.release();
  expect([lock.reading, first.isHeld, second.isHeld]).toEqual([1, false, true]);
  second.release();
  const writer = await lock.write();
  writer.release();
  using _ = await lock.write();
  writer.release();
  expect(lock.writing).toBe(true);
});

it("goes on as a reader with no writer in between, and lets in the readers that were next", async () => {
  const lock = RwLock.of(1);
  const writer = await lock.write();
  const reads = [lock.read(), lock.read()];
  const write = lock.write();
  const late = lock.read();
  writer.replace(2);
  const reader = writer.downgrade();
  expect([writer.isHeld, reader.value, lock.reading, lock.writing, lock.waiting]).toEqual([false, 2, 3, false, 2]);
  writer.release(); // is no longer its own to give back
  for (const each of [reader, ...(await Promise.all(reads))]) each.release();
  (await write).release();
  (await late).release();
});

it("lets no reader past a waiting writer by a downgrade", async () => {
  const lock = new RwLock({ prefer: "writers" });
  const writer = await lock.write();
  const read = lock.read();
  const write = lock.write();
  const reader = writer.downgrade();
  expect([lock.reading, lock.waiting]).toEqual([1, 2]);
  reader.release();
  (await write).release();
  (await read).release();
});

it("has newcomers overtake nobody, also those who would not wait", async () => {
  const lock = new RwLock();
  using _ = await lock.read();
  const write = lock.write();
  expect(lock.tryRead()).toBeUndefined();
  await expect(lock.read({ timeoutMs: 0 })).rejects.toThrow(TimeoutError);
  _.release();
  (await write).release();
  const eager = new RwLock({ prefer: "readers" });
  using first = await eager.read();
  const behind = eager.write();
  eager.tryRead()?.release();
  expect(eager.stats()).toMatchObject({ reads: 2, waitingWriters: 1 });
  first.release();
  (await behind).release();
});

it("keeps a lock that was granted before the abort of the same turn", async () => {
  const lock = new RwLock();
  const writer = await lock.write();
  const call = new AbortController();
  const read = lock.read({ signal: call.signal });
  writer.release();
  call.abort();
  using _ = await read;
  expect(lock.reading).toBe(1);
});

it("gives the lock back and calls nothing when the signal aborts between grant and call", async () => {
  const lock = new RwLock();
  const held = await lock.write();
  const call = new AbortController();
  let called = 0;
  const runs = [lock.readers, lock.writers].map((side) => side.run(() => (called += 1), { signal: call.signal }));
  held.release();
  call.abort("late");
  expect(await Promise.allSettled(runs)).toMatchObject([{ reason: "late" }, { reason: "late" }]);
  expect([called, lock.reading, lock.writing]).toEqual([0, 0, false]);
});

it("grants nothing to those who are about to hear of their abort, though it is released in the midst of that", async () => {
  const lock = new RwLock();
  const held = await lock.write();
  const call = new AbortController();
  call.signal.addEventListener("abort", () => held.release());
  const { signal } = call;
  const calls = [lock.write({ signal }), lock.read({ signal }), lock.read()];
  const outcomes = Promise.allSettled(calls);
  call.abort("gone");
  expect([lock.writing, lock.reading, lock.waiting]).toEqual([false, 1, 0]);
  expect(await outcomes).toMatchObject([{ reason: "gone" }, { reason: "gone" }, { status: "fulfilled" }]);
});

it("calls fn in the same turn when the lock can be had, gives it back when fn throws, and rejects", async () => {
  const lock = new RwLock();
  const failure = new Error("no");
  const results = [lock.readers, lock.writers].map((side) =>
    side.run(() => {
      throw failure;
    }),
  );
  expect([lock.reading, lock.writing, lock.stats().reads, lock.stats().writes]).toEqual([0, false, 1, 1]);
  for (const result of results) await expect(result).rejects.toBe(failure);
});

it("rejects all that wait when it closes, and all that come; what is held may still be released", async () => {
  const lock = new RwLock();
  const held = await lock.write();
  const { signal } = new AbortController();
  const calls = [lock.read({ signal }), lock.write(), lock.readers.run(nothing)];
  lock.close();
  lock.close();
  calls.push(lock.read(), lock.writers.run(nothing));
  const reasons = (await Promise.allSettled(calls)).map((each) => each.status === "rejected" && each.reason);
  expect(reasons.every((reason) => reason instanceof ClosedError)).toBe(true);
  expect([lock.closed, lock.waiting, getEventListeners(signal, "abort").length]).toEqual([true, 0, 0]);
  held.downgrade().release();
  expect([lock.tryRead(), lock.tryWrite()]).toEqual([undefined, undefined]);
  expect(lock.stats()).toMatchObject({ rejected: 5, reading: 0, writing: false });
});

it("closes in the midst of an abort, and who is about to hear of that is told its reason", async () => {
  const lock = new RwLock();
  const held = await lock.write();
  const call = new AbortController();
  const { signal } = call;
  signal.addEventListener("abort", () => lock.close());
  const outcomes = Promise.allSettled([lock.read({ signal }), lock.write({ signal }), lock.read()]);
  call.abort("gave up");
  expect(await outcomes).toMatchObject([{ reason: "gave up" }, { reason: "gave up" }, { reason: { code: "CLOSED" } }]);
  held.release();
  expect(lock.stats()).toMatchObject({ rejected: 1, aborted: 2, waiting: 0, waitingWriters: 0, reading: 0 });
});

it("lets nobody in by closing, though it ends the wait of a writer that readers waited for", async () => {
  const lock = new RwLock();
  using _ = await lock.read();
  const outcomes = Promise.allSettled([lock.write(), lock.read()]);
  lock.close();
  expect([lock.reading, lock.waiting]).toEqual([1, 0]);
  expect(await outcomes).toMatchObject([{ reason: { code: "CLOSED" } }, { reason: { code: "CLOSED" } }]);
});

it("turns away who would wait when as many wait as may", async () => {
  const lock = new RwLock({ maxWaiting: 1 });
  using _ = await lock.write();
  const first = lock.read();
  await expect(lock.write()).rejects.toThrow(QueueFullError);
  expect(lock.stats()).toMatchObject({ waiting: 1, waitingWriters: 0, rejected: 1 });
  _.release();
  (await first).release();
});

it("F09.4: tells the share of reads, and by name how long the longest were held, so that a mutex may be chosen", async () => {
  const clock = new VirtualClock();
  const [lock, unnamed] = [new RwLock({ name: "routes", clock }), new RwLock({ clock })];
  for (const one of [lock, unnamed]) {
    await one.readers.run(() => clock.advance(40));
    await one.writers.run(() => clock.advance(70));
    for (let reads = 0; reads < 3; reads += 1) await one.readers.run(() => clock.advance(5));
  }
  expect(lock.stats()).toMatchObject({ reads: 4, writes: 1, readShare: 0.8, longestReadMs: 40, longestWriteMs: 70 });
  expect(unnamed.stats()).toMatchObject({ readShare: 0.8, longestReadMs: 0, longestWriteMs: 0 });
});

it("tells by name who is in, who waits and since when", async () => {
  const clock = new VirtualClock();
  const lock = new RwLock({ name: "prices", clock });
  const held = await lock.read();
  const call = new AbortController();
  const calls = [lock.write(), lock.read({ timeoutMs: 10 }), lock.write({ signal: call.signal })];
  const settled = Promise.allSettled(calls);
  await clock.advance(30);
  call.abort();
  expect(lock.stats()).toEqual({
    reading: 1,
    writing: false,
    waiting: 1,
    waitingWriters: 1,
    oldestWaitMs: 30,
    reads: 1,
    writes: 0,
    readShare: 1,
    longestReadMs: 0,
    longestWriteMs: 0,
    rejected: 0,
    timedOut: 1,
    aborted: 1,
    closed: false,
  });
  held.release();
  await settled;
  expect(lock.stats()).toMatchObject({ writing: true, waiting: 0, waitingWriters: 0, oldestWaitMs: 0 });
  const entry = namedEntries().find(({ name }) => name === "prices");
  expect([entry?.kind, entry?.target.deref()]).toEqual(["rw-lock", lock]);
});

it("settles in the same number of turns on the fast and the slow path", async () => {
  for (const verb of ["read", "write"] as const) {
    const fast = await turnsUntil(new RwLock()[verb]());
    const lock = new RwLock();
    const held = await lock.write();
    const waiter: Promise<unknown> = lock[verb]();
    held.release();
    expect(await turnsUntil(waiter)).toBe(fast);
  }
});

it("rejects instead of throwing, also for bad arguments, and takes nothing", async () => {
  const broken = new RwLock({ clock: { ...systemClock, setTimer: fail } });
  using _ = await broken.write();
  await expect(broken.write({ timeoutMs: 5 })).rejects.toThrow("broken");
  expect(broken.stats()).toMatchObject({ waiting: 0, waitingWriters: 0 });
  const lock = new RwLock();
  for (const bad of [{ timeoutMs: -1 }, { signal: {} }, null]) {
    for (const call of [lock.read(bad as object), lock.write(bad as object), lock.writers.run(nothing, bad as object)])
      await expect(call).rejects.toThrow();
  }
  expect([lock.reading, lock.writing]).toEqual([0, false]);
  expect(() => new RwLock({ prefer: "both" as "fair" })).toThrow(
    "prefer must be one of fair, readers, writers, got both",
  );
  expect(() => new RwLock({ reentry: "maybe" as "wait" })).toThrow("reentry must be one of wait, throw, got maybe");
});

/** A reader every 10 ms, each of 30 ms, for a second; at 100 ms a writer comes. When it starts, and the readers after. */
async function stream(lock: RwLock, clock: VirtualClock): Promise<{ startedAt: number; later: number[] }> {
  let startedAt = Infinity;
  const later: number[] = [];
  const pause = (): Promise<void> => new Promise((onTimer) => void clock.setTimer(30, { onTimer }));
  for (let now = 0; now < 1_000; now += 10) {
    if (now === 100) void lock.writers.run(() => void (startedAt = clock.now()));
    void lock.readers.run(() => {
      if (now >= 100) later.push(clock.now());
      return pause();
    });
    await clock.advance(10);
  }
  return { startedAt, later };
}

function nothing(): void {}

function fail(): never {
  throw new Error("broken");
}

async function turnsUntil(promise: Promise<unknown>): Promise<number> {
  let turns = 0;
  const settled = promise.then(() => turns);
  const tick = (): void => {
    turns += 1;
    if (turns < 20) queueMicrotask(tick);
  };
  queueMicrotask(tick);
  return settled;
}
