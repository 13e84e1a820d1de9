import { AsyncLocalStorage } from "node:async_hooks";
import { setImmediate as turn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, it, vi } from "vitest";
import { ClosedError, QueueFullError, SelfWaitError, TimeoutError } from "../errors.ts";
import { namedEntries } from "../internal/names.ts";
import { abortCases } from "../testing/abort-suite.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Mutex } from "./mutex.ts";
import type { Permit } from "./permit.ts";
import { Semaphore } from "./semaphore.ts";

const subjects = [
  {
    name: "Mutex.acquire",
    open(clock: VirtualClock) {
      const mutex = new Mutex({ clock });
      const held = [mutex.tryAcquire()];
      return {
        async call(options: object) {
          const guard = await mutex.acquire(options);
          held.push(guard);
          return guard;
        },
        satisfy: () => held.shift()?.release(),
        state: () => ({ locked: Number(mutex.locked), waiting: mutex.waiting }),
        giveBack: (guard: unknown) => (guard as Permit).release(),
      };
    },
  },
  {
    name: "Mutex.run",
    open(clock: VirtualClock) {
      const mutex = new Mutex({ clock, reentry: "throw" });
      const guard = mutex.tryAcquire();
      return {
        call: (options: object) => mutex.run(() => {}, options),
        satisfy: () => guard?.release(),
        state: () => ({ locked: Number(mutex.locked), waiting: mutex.waiting }),
      };
    },
  },
  {
    name: "Mutex.drain",
    open(clock: VirtualClock) {
      const mutex = new Mutex({ clock });
      const guard = mutex.tryAcquire();
      return {
        call: (options: object) => mutex.drain(options),
        satisfy: () => guard?.release(),
        state: () => ({ locked: Number(mutex.locked) }),
      };
    },
  },
];

for (const { title, run } of subjects.flatMap(abortCases)) it(title, run);

it("lets one in at a time, in the order they asked", async () => {
  const mutex = new Mutex();
  const log: string[] = [];
  const body = (id: string) => async (): Promise<void> => {
    log.push(`${id} in`);
    await turn();
    log.push(`${id} out`);
  };
  await Promise.all(["a", "b", "c"].map((id) => mutex.run(body(id))));
  expect(log).toEqual(["a in", "a out", "b in", "b out", "c in", "c out"]);
  expect(mutex.locked).toBe(false);
});

it("keeps what was read before an await true after it, which a bare check does not", async () => {
  const [bare, guarded, mutex] = [{ balance: 100 }, { balance: 100 }, new Mutex()];
  await Promise.all([withdraw(bare), withdraw(bare)]);
  await Promise.all([mutex.run(() => withdraw(guarded)), mutex.run(() => withdraw(guarded))]);
  expect([bare.balance, guarded.balance]).toEqual([-60, 20]);
});

it("is unlocked by its guard alone, and once", async () => {
  const [mutex, other] = [new Mutex(), new Mutex()];
  const guard = await mutex.acquire();
  const next = mutex.acquire();
  (await other.acquire()).release();
  expect([mutex.isHeldBy(guard), other.isHeldBy(guard), mutex.locked]).toEqual([true, false, true]);
  guard.release();
  guard.release(); // the lock is the next one's now
  expect([mutex.locked, mutex.isHeldBy(guard), mutex.isHeldBy(await next)]).toEqual([true, false, true]);
  expect(mutex.isHeldBy({} as Permit)).toBe(false);
  {
    using _ = await next;
  }
  expect(mutex.locked).toBe(false);
});

it("hands the guard to the function that runs under it", async () => {
  const mutex = new Mutex();
  await mutex.run(({ guard, signal }) => expect([mutex.isHeldBy(guard), signal]).toEqual([true, undefined]));
  await mutex.run(({ guard }) => guard.release());
  expect(mutex.locked).toBe(false);
});

it("locks now or not at all", () => {
  const mutex = new Mutex();
  const guard = mutex.tryAcquire();
  expect([guard?.isHeld, mutex.tryAcquire()]).toEqual([true, undefined]);
  guard?.release();
  expect(mutex.tryAcquire()?.isHeld).toBe(true);
});

it("C010: is free at once when the holder lets go after those who waited have timed out", async () => {
  const clock = new VirtualClock();
  const mutex = new Mutex({ clock });
  const guard = await mutex.acquire();
  const waits = [mutex.acquire({ timeoutMs: 100 }), mutex.acquire({ timeoutMs: 100 })];
  const refused = Promise.all(waits.map((wait) => expect(wait).rejects.toThrow(TimeoutError)));
  await clock.advance(100);
  await refused;
  guard.release();
  expect([mutex.locked, mutex.waiting, mutex.tryAcquire()?.isHeld]).toEqual([false, 0, true]);
});

it.each([
  ["throws", fail],
  // oxlint-disable-next-line unicorn/no-thenable -- it is what is tested
  ["returns a thenable whose then throws", () => Object.defineProperty({}, "then", { value: fail })],
])("C012: a body that %s rejects its call alone, and the next starts at once", async (_, body) => {
  const unhandled = vi.fn<() => void>();
  process.on("unhandledRejection", unhandled);
  const mutex = new Mutex();
  const first = mutex.run(body);
  const second = mutex.run(() => "second");
  await expect(first).rejects.toThrow("broken");
  expect(await second).toBe("second");
  await turn();
  process.off("unhandledRejection", unhandled);
  expect([unhandled.mock.calls.length, mutex.locked]).toEqual([0, false]);
});

it("C014: a body that asks for its own lock ends by its limit, or at once where it is asked to", async () => {
  const clock = new VirtualClock();
  const [patient, strict] = [new Mutex({ clock }), new Mutex({ clock, reentry: "throw" })];
  const late = nested(patient);
  expect(await nested(strict)).toBe("SELF_WAIT");
  await clock.advance(50);
  expect(await late).toBe("TIMEOUT");
  expect([patient.locked, strict.locked, clock.timers]).toEqual([false, false, 0]);
});

it("knows from how far down a lock is asked for again, whatever lies between", async () => {
  const [outer, inner] = [new Mutex({ reentry: "throw" }), new Mutex({ reentry: "throw" })];
  const result = outer.run(() => inner.run(async () => [await turn(), await outer.acquire()]));
  await expect(result).rejects.toThrow(SelfWaitError);
  expect([outer.locked, inner.locked]).toEqual([false, false]);
});

it("lets others wait where reentry throws, and who has given the guard back", async () => {
  const mutex = new Mutex({ reentry: "throw" });
  const work = Promise.withResolvers<void>();
  const first = mutex.run(() => work.promise);
  const second = mutex.run(() => "second");
  work.resolve();
  await first;
  expect(await second).toBe("second");
  const again = mutex.run(async ({ guard }) => {
    guard.release();
    return mutex.run(() => "again");
  });
  expect(await again).toBe("again");
});

it("refuses options that are none", async () => {
  for (const reentry of ["allow", Symbol("wait")]) {
    const message = `reentry must be one of wait, throw, got ${String(reentry)}`;
    expect(() => new Mutex({ reentry: reentry as "wait" })).toThrow(message);
  }
  expect(() => new Mutex({ maxWaiting: -1 })).toThrow(RangeError);
  expect(() => new Mutex({ agingMs: -1 })).toThrow(RangeError);
  const mutex = new Mutex();
  for (const bad of [{ timeoutMs: -1 }, { priority: Infinity }, { weight: 2 }, null]) {
    await expect(mutex.acquire(bad as object)).rejects.toThrow();
    await expect(mutex.run(() => 1, bad as object)).rejects.toThrow();
  }
  expect(mutex.locked).toBe(false);
});

it("C018: the error of the body reaches the caller, and the lock is free", async () => {
  const mutex = new Mutex();
  await expect(mutex.run(fail)).rejects.toThrow("broken");
  const early = mutex.run(({ guard }) => {
    guard.release(); // the release at the end has nothing to give back, and says nothing
    return fail();
  });
  await expect(early).rejects.toThrow("broken");
  expect(mutex.locked).toBe(false);
});

it("does not call fn when the signal aborts between grant and call, and unlocks", async () => {
  const mutex = new Mutex();
  const guard = await mutex.acquire();
  const call = new AbortController();
  const fn = vi.fn<() => void>();
  const result = mutex.run(fn, { signal: call.signal });
  guard.release();
  call.abort(new Error("late"));
  await expect(result).rejects.toBe(call.signal.reason);
  expect([fn.mock.calls.length, mutex.locked]).toEqual([0, false]);
});

it("C042: a body runs in the async context of its caller, not of whoever unlocked, also where reentry throws", async () => {
  const context = new AsyncLocalStorage<number>();
  for (const reentry of ["wait", "throw"] as const) {
    const mutex = new Mutex({ reentry });
    const seen = async (): Promise<unknown[]> => {
      const before = context.getStore();
      await turn();
      return [before, context.getStore()];
    };
    const runs = Array.from({ length: 10 }, (_, id) => context.run(id, () => mutex.run(seen)));
    expect(await Promise.all(runs)).toEqual(Array.from({ length: 10 }, (_, id) => [id, id]));
  }
});

it("lets the higher priority go first, and bounds those who wait", async () => {
  const mutex = new Mutex({ maxWaiting: 2 });
  const guard = await mutex.acquire();
  const order: string[] = [];
  const runs = [mutex.run(() => void order.push("low")), mutex.run(() => void order.push("high"), { priority: 1 })];
  await expect(mutex.acquire({ priority: 9 })).rejects.toThrow(QueueFullError);
  guard.release();
  await Promise.all(runs);
  expect(order).toEqual(["high", "low"]);
});

it("turns away waiters and newcomers when it closes; the guard may still unlock", async () => {
  const mutex = new Mutex();
  const guard = await mutex.acquire();
  const waiter = mutex.acquire();
  mutex.close();
  await expect(waiter).rejects.toThrow(new ClosedError("mutex"));
  await expect(mutex.run(() => 1)).rejects.toThrow(ClosedError);
  guard.release();
  expect([mutex.closed, mutex.locked, mutex.tryAcquire()]).toEqual([true, false, undefined]);
});

it("tells what it is doing by name", async () => {
  const clock = new VirtualClock();
  const mutex = new Mutex({ name: "ledger", clock });
  const guard = await mutex.acquire();
  const waiter = mutex.acquire();
  await clock.advance(30);
  const rest = { granted: 1, rejected: 0, timedOut: 0, aborted: 0, closed: false };
  expect(mutex.stats()).toEqual({ locked: true, waiting: 1, oldestWaitMs: 30, ...rest });
  guard.release();
  await waiter;
  const entry = namedEntries().find(({ name }) => name === "ledger");
  expect([entry?.kind, entry?.target.deref()]).toEqual(["mutex", mutex]);
});

it("C07: is no cap for what several may do at once: with a semaphore in its place ten calls take the time of one", async () => {
  const clock = new VirtualClock();
  const call = (): Promise<void> => new Promise((onTimer) => void clock.setTimer(100, { onTimer }));
  const ends: number[] = [];
  for (const policy of [new Mutex({ clock }), new Semaphore(10, { clock })]) {
    const from = clock.now();
    const all = Promise.all(Array.from({ length: 10 }, () => policy.run(call))).then(() =>
      ends.push(clock.now() - from),
    );
    await clock.advance(2_000);
    await all;
  }
  expect(ends).toEqual([1_000, 100]);
});

it("is held by one at most, and by whom the line says, under any plan of calls, aborts, timeouts and releases", () => {
  const step = fc.constantFrom("acquire", "acquire", "hurry", "try", "release", "abort", "10 ms", "settle");
  const plans = fc.asyncProperty(fc.array(step, { maxLength: 40 }), play);
  return fc.assert(plans, { numRuns: 500 });
});

async function play(plan: readonly string[]): Promise<void> {
  const clock = new VirtualClock();
  const mutex = new Mutex({ clock });
  const guards: { readonly id: number; readonly guard: Permit }[] = [];
  let call = new AbortController();
  for (const [id, step] of [...plan, "settle"].entries()) {
    const { signal } = call;
    const keep = (guard: Permit): unknown => guards.push({ id, guard });
    if (step === "acquire") mutex.acquire({ signal }).then(keep, () => {});
    else if (step === "hurry") mutex.acquire({ signal, timeoutMs: 10 }).then(keep, () => {});
    else if (step === "try") [mutex.tryAcquire()].forEach((guard) => guard !== undefined && keep(guard));
    else if (step === "release") guards.forEach(({ guard }) => guard.release());
    else if (step === "abort") call = (call.abort(), new AbortController());
    else if (step === "10 ms") await clock.advance(10);
    else await turn();
    expect(guards.filter(({ guard }) => mutex.isHeldBy(guard)).length).toBeLessThanOrEqual(1);
    expect(mutex.locked || mutex.waiting === 0).toBe(true);
    if (step === "settle") expect(mutex.locked).toBe(guards.some(({ guard }) => guard.isHeld));
  }
  const order = guards.map(({ id }) => id);
  expect(order).toEqual(order.toSorted((a, b) => a - b));
}

async function withdraw(account: { balance: number }): Promise<void> {
  const { balance } = account;
  if (balance < 80) return;
  await turn();
  account.balance -= 80;
}

function nested(mutex: Mutex): Promise<string> {
  return mutex.run(async () => {
    await turn();
    return mutex.run(() => "in", { timeoutMs: 50 }).catch((error: TimeoutError | SelfWaitError) => error.code);
  });
}

function fail(): never {
  throw new Error("broken");
}
