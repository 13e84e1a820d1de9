import { getEventListeners } from "node:events";
import { expect, it } from "vitest";
import { ClosedError, QueueFullError, TimeoutError } from "../errors.ts";
import { namedEntries } from "../internal/names.ts";
import { abortCases } from "../testing/abort-suite.ts";
import { turn } from "../testing/turn.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Pool } from "./pool.ts";
import type { Lease } from "./pool-lease.ts";
import type { PoolOptions } from "./pool-options.ts";

/** Numbers that are made at once, and a record of what became of them. */
function numbers(
  max: number,
  options: Partial<PoolOptions<number>> = {},
): { pool: Pool<number>; gone: number[]; clock: VirtualClock } {
  const clock = new VirtualClock();
  const gone: number[] = [];
  let made = 0;
  const pool = new Pool<number>(max, {
    create: () => (made += 1),
    destroy: (id) => void gone.push(id),
    clock,
    ...options,
  });
  return { pool, gone, clock };
}

/** Resources whose making and unmaking a test ends by hand. */
function slow(
  max: number,
  options: Partial<PoolOptions<string>> = {},
): {
  pool: Pool<string>;
  clock: VirtualClock;
  making: PromiseWithResolvers<string>[];
  unmaking: { readonly resource: string; readonly end: PromiseWithResolvers<void> }[];
  errors: unknown[];
} {
  const clock = new VirtualClock();
  const making: PromiseWithResolvers<string>[] = [];
  const unmaking: { readonly resource: string; readonly end: PromiseWithResolvers<void> }[] = [];
  const errors: unknown[] = [];
  const pool = new Pool<string>(max, {
    create() {
      const made = Promise.withResolvers<string>();
      making.push(made);
      return made.promise;
    },
    destroy(resource) {
      const end = Promise.withResolvers<void>();
      unmaking.push({ resource, end });
      return end.promise;
    },
    onError: (error) => errors.push(error),
    clock,
    ...options,
  });
  return { pool, clock, making, unmaking, errors };
}

for (const { title, run } of [
  ...abortCases({
    name: "Pool.acquire",
    open(clock) {
      const { pool, held, first } = lentOut(clock);
      return {
        async call(options) {
          const lease = await pool.acquire(options);
          held.push(lease);
          return lease;
        },
        satisfy: () => first.then(() => held.shift()?.release()),
        state: () => ({ size: pool.size, waiting: pool.waiting }),
        giveBack: (lease) => (lease as Lease<string>).release(),
      };
    },
  }),
  ...abortCases({
    name: "Pool.run",
    open(clock) {
      const { pool, held, first } = lentOut(clock);
      return {
        call: (options) => pool.run((only) => only, options),
        satisfy: () => first.then(() => held.shift()?.release()),
        state: () => ({ size: pool.size, waiting: pool.waiting }),
      };
    },
  }),
  ...(["drain", "close"] as const).flatMap((verb) =>
    abortCases({
      name: `Pool.${verb}`,
      open(clock) {
        const { pool, held, first } = lentOut(clock);
        return {
          call: (options) => first.then(() => pool[verb](options)),
          satisfy: () => first.then(() => held.shift()?.release()),
          state: () => ({ waiting: pool.waiting }),
        };
      },
    }),
  ),
])
  it(title, run);

/** A pool of one, which is out. */
function lentOut(clock: VirtualClock): {
  readonly pool: Pool<string>;
  readonly held: Lease<string>[];
  readonly first: Promise<unknown>;
} {
  const pool = new Pool(1, { create: () => "only", clock });
  const held: Lease<string>[] = [];
  return { pool, held, first: pool.acquire().then((lease) => held.push(lease)) };
}

it("lends the warmest that is idle, and makes another only when none is", async () => {
  const { pool } = numbers(3);
  const leases = [await pool.acquire(), await pool.acquire(), await pool.acquire()];
  for (const lease of leases) lease.release();
  const next = [await pool.acquire(), await pool.acquire()];
  expect(next.map(({ resource }) => resource)).toEqual([3, 2]);
  expect(pool.stats()).toMatchObject({ created: 3, idle: 1, borrowed: 2, size: 3, granted: 5 });
});

it("makes max at most, those under way and those being destroyed included", async () => {
  const { pool, making, unmaking } = slow(2);
  const calls = Array.from({ length: 5 }, () => pool.acquire());
  expect([making.length, pool.size, pool.waiting]).toEqual([2, 2, 5]);
  making[0]?.resolve("a");
  const first = await calls[0];
  pool.invalidate("a");
  first?.release();
  await turn();
  expect([making.length, pool.stats()]).toEqual([2, expect.objectContaining({ destroying: 1, creating: 1, size: 2 })]);
  unmaking[0]?.end.resolve();
  await turn();
  expect([making.length, pool.stats()]).toEqual([3, expect.objectContaining({ destroying: 0, creating: 2, size: 2 })]);
});

it("hands what comes back to who has waited longest, and lets no newcomer slip in", async () => {
  const { pool } = numbers(1);
  const held = await pool.acquire();
  const order: string[] = [];
  const waits = ["first", "second"].map((id) => pool.acquire().then((lease) => (order.push(id), lease)));
  held.release();
  held.release(); // as good as once
  const late = pool.acquire().then(() => order.push("late"));
  expect([pool.tryAcquire(), pool.idle, pool.waiting]).toEqual([undefined, 0, 2]);
  (await waits[0])?.release();
  (await waits[1])?.release();
  await late;
  expect(order).toEqual(["first", "second", "late"]);
});

it("tells who asked that nothing could be made, and leaks no place", async () => {
  const { pool, making, errors } = slow(2);
  const calls = [pool.acquire(), pool.acquire(), pool.acquire()];
  const failure = new Error("refused");
  making[1]?.reject(failure);
  await expect(calls[1]).rejects.toBe(failure);
  expect([making.length, pool.stats()]).toEqual([3, expect.objectContaining({ failed: 1, creating: 2, waiting: 2 })]);
  making[2]?.resolve("c");
  expect((await calls[0])?.resource).toBe("c"); // who came first, whoever asked for it
  making[0]?.reject(failure); // the one that had asked for it is served
  await turn();
  expect([errors, making.length]).toEqual([[failure], 4]);
  making[3]?.resolve("d");
  expect((await calls[2])?.resource).toBe("d");
});

it("takes a create that throws synchronously for one that fails", async () => {
  const failure = new Error("no");
  const pool = new Pool<string>(1, {
    create: () => {
      throw failure;
    },
  });
  for (let times = 0; times < 3; times += 1) await expect(pool.acquire()).rejects.toBe(failure);
  await expect(pool.run(() => 1)).rejects.toBe(failure);
  expect(pool.stats()).toMatchObject({ size: 0, failed: 4, creating: 0, waiting: 0 });
});

it("gives what was made for a caller who left to the next, or keeps it", async () => {
  const { pool, making, errors } = slow(1);
  const call = new AbortController();
  const left = pool.acquire({ signal: call.signal });
  const next = pool.acquire();
  call.abort("gone");
  await expect(left).rejects.toBe("gone");
  making[0]?.resolve("a");
  (await next).release();
  expect([making.length, pool.idle]).toEqual([1, 1]);
  const other = slow(1);
  const hurried = other.pool.acquire({ timeoutMs: 10 });
  const late = expect(hurried).rejects.toThrow(TimeoutError);
  await other.clock.advance(10);
  await late;
  expect(other.pool.stats()).toMatchObject({ creating: 1, waiting: 0, timedOut: 1 });
  other.making[0]?.resolve("b");
  await turn();
  expect([other.pool.idle, other.pool.tryAcquire()?.resource, errors]).toEqual([1, "b", []]);
});

it("validates what was idle before it is lent, and replaces what is stale", async () => {
  const stale = new Set([1]);
  const { pool, gone } = numbers(2, { validate: (id) => !stale.has(id) });
  (await pool.acquire()).release();
  expect((await pool.acquire()).resource).toBe(2);
  expect([gone, pool.stats()]).toEqual([[1], expect.objectContaining({ destroyed: 1, created: 2 })]);
});

it.each(["says no", "fails", "throws"])("replaces what is found stale in time, when validate %s", async (how) => {
  const errors: unknown[] = [];
  const failure = new Error("broken");
  const check = (): Promise<boolean> => (how === "says no" ? Promise.resolve(false) : Promise.reject(failure));
  const validate = (id: number): Promise<boolean> | boolean => {
    if (how === "throws") throw failure;
    return id === 1 ? check() : true;
  };
  const { pool, gone } = numbers(1, { validate, onError: (error) => errors.push(error) });
  (await pool.acquire()).release();
  expect((await pool.acquire()).resource).toBe(2);
  expect([gone, errors]).toEqual([[1], how === "says no" ? [] : [failure]]);
});

it("lends without asking what came back less than validateAfterMs ago", async () => {
  let asked = 0;
  const { pool, clock } = numbers(1, { validate: () => ((asked += 1), true), validateAfterMs: 500 });
  (await pool.acquire()).release();
  await clock.advance(499);
  (await pool.acquire()).release();
  expect(asked).toBe(0);
  await clock.advance(500);
  (await pool.acquire()).release();
  expect(asked).toBe(1);
});

it("takes nothing at once that must be waited for, and lends it when it has been validated", async () => {
  const verdict = Promise.withResolvers<boolean>();
  const { pool } = numbers(1, { validate: () => verdict.promise });
  (await pool.acquire()).release();
  expect([pool.tryAcquire(), pool.stats().checking]).toEqual([undefined, 1]);
  const call = pool.acquire();
  verdict.resolve(true);
  expect([(await call).resource, pool.size]).toEqual([1, 1]);
});

it("destroys what was invalidated, at once if it is idle, else when it comes back", async () => {
  const { pool, gone } = numbers(3);
  const [first, second] = [await pool.acquire(), await pool.acquire()];
  second.release();
  expect([pool.invalidate(2), pool.invalidate(1), pool.invalidate(1), pool.invalidate(99)]).toEqual([
    true,
    true,
    false,
    false,
  ]);
  expect(gone).toEqual([2]);
  first.release();
  expect([gone, pool.size]).toEqual([[2, 1], 2]); // both are being destroyed
  await turn();
  expect([pool.size, (await pool.acquire()).resource]).toEqual([0, 3]);
});

it("keeps those above min for idleMs, the coldest go first, and min of them stay", async () => {
  const { pool, gone, clock } = numbers(4, { min: 1, idleMs: 1_000 });
  const leases = [await pool.acquire(), await pool.acquire(), await pool.acquire()];
  for (const lease of leases) {
    lease.release();
    await clock.advance(100);
  }
  await clock.advance(699);
  expect(gone).toEqual([]);
  await clock.advance(1);
  expect(gone).toEqual([1]);
  await clock.advance(100);
  expect(gone).toEqual([1, 2]);
  await clock.advance(60_000);
  expect([gone, pool.idle, clock.timers]).toEqual([[1, 2], 1, 0]);
});

it("lends none that has outlived lifetimeMs, whether idle or out, and makes up for min", async () => {
  const { pool, gone, clock } = numbers(2, { min: 1, lifetimeMs: 1_000 });
  await clock.advance(0);
  const lease = await pool.acquire();
  await clock.advance(1_500);
  expect([gone, pool.size]).toEqual([[], 1]); // nobody takes it away
  lease.release();
  await clock.advance(0);
  expect([gone, pool.idle]).toEqual([[1], 1]);
  await clock.advance(1_000);
  expect([gone, pool.idle, pool.stats().created]).toEqual([[1, 2], 1, 3]);
  clock.stall(1_000); // so that nobody has swept
  expect([(await pool.acquire()).resource, gone]).toEqual([4, [1, 2, 3]]);
  pool.close().catch(() => {});
  expect(clock.timers).toBe(0);
});

it("makes min at once, and tries again after a second when that fails", async () => {
  const { pool, clock, making, errors } = slow(3, { min: 2 });
  expect(making).toHaveLength(2);
  making[0]?.resolve("a");
  making[1]?.reject(new Error("refused"));
  await turn();
  expect([errors, pool.idle, making.length]).toEqual([[new Error("refused")], 1, 2]);
  await clock.advance(999);
  expect(making).toHaveLength(2);
  await clock.advance(1);
  expect(making).toHaveLength(3);
});

it("F02.3: turns away who finds all out and too many waiting, but none for whom one can be made", async () => {
  const { pool, making } = slow(2, { maxWaiting: 1 });
  const calls = [pool.acquire(), pool.acquire(), pool.acquire()];
  await expect(pool.acquire()).rejects.toMatchObject({ code: "QUEUE_FULL", limit: 1 });
  await expect(pool.run(() => 1)).rejects.toThrow(QueueFullError);
  for (const [index, made] of making.entries()) made.resolve(`${index}`);
  (await calls[0])?.release();
  expect([(await calls[2])?.resource, pool.stats().rejected]).toEqual(["0", 2]);
  const none = slow(1, { maxWaiting: 0 });
  const only = none.pool.acquire();
  await expect(none.pool.acquire()).rejects.toThrow(QueueFullError);
  none.making[0]?.resolve("only");
  expect((await only).resource).toBe("only");
});

it("F02.2: a caller who waits for a second one while holding the only one gives up after its timeoutMs", async () => {
  const { pool, clock } = numbers(1);
  const nested = pool.run(() => pool.run(() => "never", { timeoutMs: 250 }));
  const failed = expect(nested).rejects.toThrow(TimeoutError);
  await clock.advance(250);
  await failed;
  expect(pool.stats()).toMatchObject({ idle: 1, borrowed: 0, waiting: 0 });
});

it("F02.4: tells onError of a destroy that fails, and frees its place all the same", async () => {
  const { pool, unmaking, making, errors } = slow(1);
  const call = pool.acquire();
  making[0]?.resolve("a");
  const lease = await call;
  pool.invalidate("a");
  lease.release();
  unmaking[0]?.end.reject(new Error("stuck"));
  await turn();
  expect([errors, pool.stats()]).toEqual([
    [new Error("stuck")],
    expect.objectContaining({ size: 0, failed: 1, destroyed: 1 }),
  ]);
});

it("calls fn in the same turn when one is idle, gives it back on every path, and hands the signal on", async () => {
  const { pool } = numbers(1);
  expect(await pool.run((id, { signal }) => [id, signal])).toEqual([1, undefined]);
  let called = false;
  const { signal } = new AbortController();
  const result = pool.run((_, context) => ((called = true), context.signal), { signal });
  expect(called).toBe(true);
  expect(await result).toBe(signal);
  const failure = new Error("no");
  await expect(
    pool.run(() => {
      throw failure;
    }),
  ).rejects.toBe(failure);
  expect(pool.stats()).toMatchObject({ idle: 1, borrowed: 0, granted: 3 });
});

it("does not call fn when the signal aborts between grant and call", async () => {
  const { pool } = numbers(1);
  const held = await pool.acquire();
  const call = new AbortController();
  let called = false;
  const result = pool.run(() => void (called = true), { signal: call.signal });
  held.release();
  call.abort("late");
  await expect(result).rejects.toBe("late");
  expect([called, pool.idle, getEventListeners(call.signal, "abort").length]).toEqual([false, 1, 0]);
});

it("grants nothing to who is about to hear of its abort, but serves who stands behind", async () => {
  const { pool } = numbers(1);
  const held = await pool.acquire();
  const call = new AbortController();
  let taken: unknown = "nothing was tried";
  call.signal.addEventListener("abort", () => {
    held.release(); // before the waits hear of the abort
    taken = pool.tryAcquire();
  });
  const doomed = pool.acquire({ signal: call.signal });
  const behind = pool.acquire();
  call.abort("gone");
  expect(taken).toBeUndefined(); // somebody waits for it
  await expect(doomed).rejects.toBe("gone");
  expect((await behind).resource).toBe(1);
});

it("gives what has just been made to nobody whose signal has aborted, though that hasn't been told yet", async () => {
  const { pool, making } = slow(1);
  const state = { aborted: false, reason: "gone", throwIfAborted: () => {} };
  const signal = Object.assign(new EventTarget(), state) as unknown as AbortSignal & { aborted: boolean };
  const doomed = pool.acquire({ signal });
  const behind = pool.acquire();
  signal.aborted = true; // in browsers microtasks run between two listeners of a timeout's abort
  making[0]?.resolve("a");
  await turn();
  expect([pool.idle, pool.waiting]).toEqual([1, 2]);
  signal.dispatchEvent(new Event("abort"));
  await expect(doomed).rejects.toBe("gone");
  expect((await behind).resource).toBe("a");
});

it("A10: closes for good: who waits is told, what is out is destroyed when it comes back, and then it resolves", async () => {
  const { pool, gone } = numbers(2);
  const held = [await pool.acquire(), await pool.acquire()];
  const refused = expect(pool.acquire()).rejects.toThrow(ClosedError);
  let isOver = false;
  const closed = pool.close().then(() => (isOver = true));
  await refused;
  await expect(pool.acquire()).rejects.toMatchObject({ code: "CLOSED" });
  held[1]?.release();
  await turn();
  expect([pool.tryAcquire(), pool.closed, isOver, gone]).toEqual([undefined, true, false, [2]]);
  held[0]?.release();
  await closed;
  await pool.close();
  expect([gone, pool.size, pool.stats().rejected]).toEqual([[2, 1], 0, 2]);
});

it("A10: waits for its end no longer than it is told, and goes on closing", async () => {
  const { pool, gone, clock } = numbers(1);
  const held = await pool.acquire();
  const failed = expect(pool.close({ timeoutMs: 100 })).rejects.toThrow(TimeoutError);
  await clock.advance(100);
  await failed;
  await expect(pool.close({ signal: AbortSignal.abort("now") })).rejects.toBe("now");
  held.release();
  await pool.close();
  expect(gone).toEqual([1]);
  const { pool: other } = numbers(1);
  await expect(other.close({ timeoutMs: -1 })).rejects.toThrow(RangeError);
  expect(other.closed).toBe(false);
});

it("tells a create that is under way of the close, and destroys what it makes all the same", async () => {
  const signals: AbortSignal[] = [];
  const made = Promise.withResolvers<number>();
  const create = ({ signal }: { readonly signal: AbortSignal }): Promise<number> => (
    signals.push(signal),
    made.promise
  );
  const { pool, gone } = numbers(1, { create });
  const call = expect(pool.acquire()).rejects.toThrow(ClosedError);
  const closed = pool.close();
  await call;
  expect(signals.map(({ aborted, reason }) => [aborted, reason])).toEqual([[true, expect.any(ClosedError)]]);
  made.resolve(7);
  await closed;
  expect([gone, pool.stats()]).toEqual([[7], expect.objectContaining({ created: 1, destroyed: 1, size: 0 })]);
});

it("drains when the last has come back and nobody waits, and is still open then", async () => {
  const { pool } = numbers(1);
  await pool.drain();
  const held = await pool.acquire();
  const next = pool.acquire();
  let drained = false;
  const over = pool.drain().then(() => (drained = true));
  held.release();
  const last = await next;
  await turn();
  expect(drained).toBe(false);
  last.release();
  await over;
  expect([pool.closed, pool.idle]).toEqual([false, 1]);
});

it("closes at the end of a block", async () => {
  const { pool, gone } = numbers(1);
  {
    await using own = pool;
    using _ = await own.acquire();
  }
  expect([gone, pool.closed]).toEqual([[1], true]);
});

it("tells what it has by name, and how long the first has waited", async () => {
  const { pool, clock } = numbers(1, { name: "db", dependency: "postgres" });
  await pool.acquire();
  const waits = [pool.acquire(), pool.acquire()];
  await clock.advance(40);
  expect(namedEntries().find(({ name }) => name === "db")).toMatchObject({ kind: "pool", dependency: "postgres" });
  expect(pool.stats()).toMatchObject({ max: 1, waiting: 2, oldestWaitMs: 40, borrowed: 1 });
  expect(waits).toHaveLength(2);
});

it.each([
  [0, {}, "max must be an integer >= 1 or Infinity, got 0"],
  [2, { min: 3 }, "min must be an integer <= 2, got 3"],
  [2, { min: -1 }, "min must be an integer >= 0, got -1"],
  [2, { create: 5 }, "create must be a function, got number"],
  [2, { destroy: null }, "destroy must be a function, got null"],
  [2, { validate: "no" }, "validate must be a function, got string"],
  [2, { onError: 1 }, "onError must be a function, got number"],
  [2, { idleMs: -1 }, "idleMs must be >= 0, got -1"],
  [2, { lifetimeMs: 0 }, "lifetimeMs must be >= 1, got 0"],
  [2, { validateAfterMs: Number.NaN }, "validateAfterMs must be >= 0, got NaN"],
  [2, { maxWaiting: 0.5 }, "maxWaiting must be an integer >= 0 or Infinity, got 0.5"],
])("refuses max %d with %o before it makes anything, and says why", (max, options, message) => {
  let made = 0;
  const all = { create: () => (made += 1), min: 1, ...options } as unknown as PoolOptions<number>;
  expect(() => new Pool(max, all)).toThrow(message);
  expect(made).toBe(0);
});
