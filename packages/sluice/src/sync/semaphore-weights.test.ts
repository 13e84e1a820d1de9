import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { ClosedError, QueueFullError, TimeoutError } from "../errors.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import type { Permit } from "./permit.ts";
import { Semaphore } from "./semaphore.ts";

it("C001: when the head of the line gives up, those behind it get what is free in the same turn", async () => {
  const sem = new Semaphore(2);
  const a = await sem.acquire();
  const call = new AbortController();
  const b = sem.acquire({ weight: 2, signal: call.signal });
  const c = sem.acquire();
  call.abort(new Error("gives up"));
  expect([sem.available, sem.waiting]).toEqual([0, 0]);
  await expect(b).rejects.toBe(call.signal.reason);
  a.release();
  (await c).release();
  expect([sem.available, sem.waiting]).toEqual([2, 0]);
});

it("grants nothing to those who leave by the same abort", async () => {
  const sem = new Semaphore(2);
  await sem.acquire();
  const call = new AbortController();
  const lost = [2, 1, 1].map((weight) => sem.acquire({ weight, signal: call.signal }));
  const last = sem.acquire();
  call.abort(new Error("all"));
  expect([sem.available, sem.waiting]).toEqual([0, 0]);
  const outcomes = await Promise.allSettled(lost);
  expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  (await last).release();
  expect(sem.stats()).toMatchObject({ granted: 2, aborted: 3 });
});

it("serves those behind the head when its time has run out", async () => {
  const clock = new VirtualClock();
  const sem = new Semaphore(3, { clock });
  await sem.acquire({ weight: 2 });
  const big = sem.acquire({ weight: 2, timeoutMs: 10 });
  const refused = expect(big).rejects.toThrow(TimeoutError);
  const small = sem.acquire();
  await clock.advance(10);
  await refused;
  expect((await small).isHeld).toBe(true);
});

it("lets nobody overtake a big request, however small: neither who waits behind it nor who comes", async () => {
  const sem = new Semaphore(3);
  const held = [await sem.acquire(), await sem.acquire()];
  const order: string[] = [];
  void sem.acquire({ weight: 3 }).then((permit) => order.push("big") && setImmediate(() => permit.release()));
  const small = sem.acquire().then((permit) => order.push("small") && permit.release());
  expect([sem.available, sem.tryAcquire(), sem.waiting]).toEqual([1, undefined, 2]);
  await expect(sem.acquire({ timeoutMs: 0 })).rejects.toThrow(TimeoutError);
  held[0]?.release();
  await turn();
  expect(order).toEqual([]);
  held[1]?.release();
  await small;
  expect(order).toEqual(["big", "small"]);
});

it("grants as many as there is room for when much is given back at once", async () => {
  const sem = new Semaphore(5);
  const all = await sem.acquire({ weight: 5 });
  const waits = [2, 2, 2, 1].map((weight) => sem.acquire({ weight }));
  all.release();
  expect([sem.available, sem.waiting]).toEqual([1, 2]);
  (await waits[0])?.release();
  expect([sem.available, sem.waiting]).toEqual([0, 0]);
});

it("C008: refuses at once what is more than there ever will be, and serves the next", async () => {
  const sem = new Semaphore(2);
  await expect(sem.acquire({ weight: 3 })).rejects.toThrow(
    new RangeError("weight must be an integer from 1 to the limit of 2, got 3"),
  );
  expect(() => sem.tryAcquire({ weight: 3 })).toThrow(RangeError);
  await expect(sem.run(() => 1, { weight: 3 })).rejects.toThrow(RangeError);
  const next = sem.acquire();
  expect([sem.available, sem.waiting]).toEqual([1, 0]);
  (await next).release();
});

it("refuses weights and priorities that are none, and takes nothing", async () => {
  const sem = new Semaphore(2);
  for (const bad of [
    { weight: 0 },
    { weight: 1.5 },
    { weight: "1" },
    { weight: null },
    { priority: Number.NaN },
    { priority: "1" },
  ]) {
    await expect(sem.acquire(bad as object)).rejects.toThrow(/^(weight|priority) must be /);
    await expect(sem.run(() => 1, bad as object)).rejects.toThrow(/^(weight|priority) must be /);
  }
  expect(() => sem.tryAcquire({ weight: 0 })).toThrow("weight must be an integer from 1 to the limit of 2, got 0");
  expect(sem.available).toBe(2);
});

it("gives all of a weight back at once, and only once", async () => {
  const sem = new Semaphore(3);
  const permit = sem.tryAcquire({ weight: 2 });
  expect([sem.available, permit?.isHeld]).toEqual([1, true]);
  permit?.release();
  permit?.release();
  expect([sem.available, permit?.isHeld]).toEqual([3, false]);
  await sem.run(() => expect(sem.available).toBe(1), { weight: 2 });
  expect(sem.available).toBe(3);
});

it("takes all that is free by its weight, with nobody in between", () => {
  const sem = new Semaphore(3);
  sem.tryAcquire();
  const rest = sem.tryAcquire({ weight: sem.available });
  expect([sem.available, sem.tryAcquire()]).toEqual([0, undefined]);
  rest?.release();
  expect(sem.available).toBe(2);
});

it("waits for all permits when its weight is all of them, and holds back who comes meanwhile", async () => {
  const sem = new Semaphore(2);
  const held = [await sem.acquire(), await sem.acquire()];
  const exclusive = sem.acquire({ weight: sem.permits });
  const next = sem.acquire();
  for (const permit of held) permit.release();
  const all = await exclusive;
  expect([sem.available, sem.waiting]).toEqual([0, 1]);
  all.release();
  expect((await next).isHeld).toBe(true);
});

it("C007: a new limit counts from the old one, starts waiters at once, and waits for what is held beyond it", async () => {
  const sem = new Semaphore(1);
  let running = 0;
  const ends: (() => void)[] = [];
  const work = (): Promise<void> => {
    running += 1;
    return new Promise<void>((end) => void ends.push(end)).finally(() => (running -= 1));
  };
  for (let calls = 0; calls < 10; calls += 1) void sem.run(work);
  sem.resize(5);
  await turn();
  expect([running, sem.waiting, sem.available]).toEqual([5, 5, 0]);
  sem.resize(2);
  expect(sem.stats()).toMatchObject({ permits: 2, held: 5, available: 0 });
  for (const [left, waiting] of [
    [4, 5],
    [3, 5],
    [2, 5],
    [2, 4],
  ] as const) {
    ends.shift()?.();
    await turn();
    expect([running, sem.waiting, sem.available]).toEqual([left, waiting, 0]);
  }
  sem.resize(4);
  await turn();
  expect([running, sem.waiting, sem.available]).toEqual([4, 2, 0]);
});

it("turns away who waits for more than a lowered limit, and serves those behind", async () => {
  const sem = new Semaphore(3);
  const held = await sem.acquire({ weight: 2 });
  const big = sem.acquire({ weight: 3 });
  const small = sem.acquire();
  sem.resize(2);
  await expect(big).rejects.toThrow(new RangeError("weight must be an integer from 1 to the limit of 2, got 3"));
  expect([sem.available, sem.waiting]).toEqual([0, 1]);
  held.release();
  (await small).release();
  expect(sem.stats()).toMatchObject({ available: 2, rejected: 1 });
  for (const bad of [0, 1.5, "2"]) expect(() => sem.resize(bad as number)).toThrow(/^permits must be /);
  expect(sem.permits).toBe(2);
});

it("lets the higher priority go first, in the order they came among equals", async () => {
  const sem = new Semaphore(1, { agingMs: Infinity });
  const held = await sem.acquire();
  const order: string[] = [];
  const waits = [
    ["a", 0],
    ["b", 1],
    ["c", -1],
    ["d", 1],
    ["e", undefined],
  ] as const;
  const runs = waits.map(([id, priority]) => sem.run(() => void order.push(id), { priority }));
  held.release();
  await Promise.all(runs);
  expect(order.join("")).toBe("bdaec");
});

it("ages those who wait, so that a stream of higher priority starves nobody", async () => {
  expect(await startOfLow(Infinity)).toBe(Infinity);
  expect(await startOfLow(1_000)).toBeLessThanOrEqual(2_200);
});

it("admits at once who says nothing of its priority, before those who wait for more with a lower one", async () => {
  const sem = new Semaphore(2, { agingMs: Infinity });
  const held = await sem.acquire();
  const patient = sem.acquire({ weight: 2, priority: -1 });
  const plain = await sem.acquire();
  expect([plain.isHeld, sem.waiting]).toEqual([true, 1]);
  held.release();
  plain.release();
  (await patient).release();
});

it("admits at once who has the highest priority if what is free will do, though others wait for more", async () => {
  const sem = new Semaphore(2);
  await sem.acquire();
  const big = sem.acquire({ weight: 2 });
  const urgent = await sem.acquire({ priority: 1 });
  expect([sem.available, sem.waiting]).toEqual([0, 1]);
  urgent.release();
  expect(sem.tryAcquire()).toBeUndefined();
  sem.close();
  await expect(big).rejects.toThrow(ClosedError);
});

it("drains when nothing is held and nobody waits, at once if so, and turns nobody away meanwhile", async () => {
  const clock = new VirtualClock();
  const sem = new Semaphore(2, { clock });
  await sem.drain();
  const held = await sem.acquire();
  const next = sem.acquire({ weight: 2 });
  let drained = false;
  const drain = sem.drain().then(() => (drained = true));
  await expect(sem.drain({ timeoutMs: 0 })).rejects.toThrow(TimeoutError);
  const late = sem.drain({ timeoutMs: 50 });
  const refused = expect(late).rejects.toThrow(TimeoutError);
  await clock.advance(50);
  await refused;
  held.release();
  const permit = await next;
  expect([drained, clock.timers]).toEqual([false, 0]);
  permit.release();
  await drain;
});

it("gives nothing out once it is closed, though permits are free and those before have left", async () => {
  const sem = new Semaphore(2);
  await sem.acquire();
  const waits = [sem.acquire({ weight: 2 }), sem.acquire()];
  sem.close();
  for (const call of [...waits, sem.acquire(), sem.run(() => 1)]) await expect(call).rejects.toThrow(ClosedError);
  expect([sem.tryAcquire(), sem.available, sem.waiting]).toEqual([undefined, 1, 0]);
  expect(sem.stats()).toMatchObject({ granted: 1, rejected: 4 });
});

it("drains with what was held when it was closed", async () => {
  const sem = new Semaphore(1);
  const held = await sem.acquire();
  const waiter = sem.acquire();
  sem.close();
  await expect(waiter).rejects.toThrow(ClosedError);
  const drain = sem.drain();
  held.release();
  await drain;
});

it("counts the places of those who wait, not what they wait for, towards maxWaiting", async () => {
  const sem = new Semaphore(2, { maxWaiting: 1 });
  await sem.acquire();
  void sem.acquire({ weight: 2 });
  await expect(sem.acquire()).rejects.toThrow(QueueFullError);
});

it("C035: 50 000 waiters, each of which releases in its turn, end without deep calls", async () => {
  const sem = new Semaphore(1);
  const held = await sem.acquire();
  let done = 0;
  const runs = Array.from({ length: 50_000 }, () => sem.acquire().then((permit) => (permit.release(), (done += 1))));
  held.release();
  await Promise.all(runs);
  expect([done, sem.available]).toEqual([50_000, 1]);
});

it.each(Array.from({ length: 11 }, (_, k) => k))(
  "C039: who comes %d microtasks after a release takes no permit of those who wait",
  async (k) => {
    const sem = new Semaphore(1);
    const starts: string[] = [];
    let running = 0;
    const body = (id: string) => async (): Promise<void> => {
      starts.push(id);
      running += 1;
      expect(running).toBe(1);
      await turn();
      running -= 1;
      if (id === "A") void microtasks(k).then(() => (last = sem.run(body("D"))));
    };
    let last: Promise<void> | undefined;
    await Promise.all([sem.run(body("A")), sem.run(body("B"))]);
    await turn();
    await last;
    expect(starts.join("")).toBe("ABD");
  },
);

const pause = Promise.resolve();

/** When a call of low priority starts, under ten seconds of calls of a higher one. */
async function startOfLow(agingMs: number): Promise<number> {
  const clock = new VirtualClock();
  const sem = new Semaphore(1, { clock, agingMs });
  const work = (): Promise<void> => new Promise((onTimer) => void clock.setTimer(100, { onTimer }));
  void sem.run(work);
  let startedAt = Infinity;
  void sem.run(() => void (startedAt = clock.now()));
  for (let calls = 0; calls < 100; calls += 1) {
    void sem.run(work, { priority: 2 });
    await clock.advance(100);
  }
  return startedAt;
}

async function microtasks(count: number): Promise<void> {
  for (let left = count; left > 0; left -= 1) await pause;
}

it("keeps what it says of permits, and serves by priority and then by arrival, under any plan", () => {
  const weight = fc.integer({ min: 1, max: 4 });
  const step = fc.oneof(
    fc.record({ kind: fc.constant("acquire" as const), weight, priority: fc.integer({ min: 0, max: 2 }) }),
    fc.record({ kind: fc.constant("try" as const), weight }),
    fc.record({ kind: fc.constant("release" as const), weight }),
    fc.record({ kind: fc.constantFrom("abort" as const, "resize" as const), weight }),
  );
  const plans = fc.asyncProperty(fc.array(step, { maxLength: 40 }), play);
  return fc.assert(plans, { numRuns: 500 });
});

type Step = Readonly<{ kind: "acquire" | "try" | "release" | "abort" | "resize"; weight: number; priority?: number }>;

/** Against a model that sorts its line anew at each step. */
async function play(plan: readonly Step[]): Promise<void> {
  const sem = new Semaphore(4, { agingMs: Infinity });
  let limit = 4;
  let line: { id: number; weight: number; priority: number; call: AbortController }[] = [];
  const held: { weight: number; permit: Permit | undefined; id: number }[] = [];
  const used = (): number => held.reduce((sum, each) => sum + each.weight, 0);
  const granted = new Map<number, Permit>();
  const serve = (): void => {
    line.sort((a, b) => b.priority - a.priority || a.id - b.id);
    for (let next = line[0]; next !== undefined && used() + next.weight <= limit; next = line[0]) {
      held.push({ weight: next.weight, id: next.id, permit: undefined });
      line.shift();
    }
  };
  for (const [id, { kind, weight, priority = 0 }] of plan.entries()) {
    if (kind === "acquire") {
      const call = new AbortController();
      const acquired = sem.acquire({ weight, priority, signal: call.signal });
      acquired.then(
        (permit) => granted.set(id, permit),
        () => {},
      );
      if (weight <= limit) line.push({ id, weight, priority, call });
      serve();
    } else if (kind === "try") {
      const fits = weight <= limit && line.length === 0 && used() + weight <= limit;
      if (weight > limit) expect(() => sem.tryAcquire({ weight })).toThrow(RangeError);
      else {
        const permit = sem.tryAcquire({ weight });
        expect(permit !== undefined).toBe(fits);
        if (fits) held.push({ weight, permit, id });
      }
    } else if (kind === "release" && held.length > 0) {
      await turn();
      const [oldest] = held.splice(weight % held.length, 1);
      (oldest?.permit ?? granted.get(oldest?.id ?? -1))?.release();
      serve();
    } else if (kind === "abort" && line.length > 0) {
      const [gone] = line.splice(weight % line.length, 1);
      gone?.call.abort();
      expect(getEventListeners(gone?.call.signal as AbortSignal, "abort")).toEqual([]);
      serve();
    } else if (kind === "resize") {
      limit = weight;
      sem.resize(weight);
      line = line.filter((each) => each.weight <= limit);
      serve();
    }
    const available = Math.max(0, limit - used());
    expect([sem.available, sem.stats().held, sem.waiting]).toEqual([available, used(), line.length]);
  }
  await turn();
  for (const { id, permit } of held) expect((permit ?? granted.get(id))?.isHeld).toBe(true);
}
