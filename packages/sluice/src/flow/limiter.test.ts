import { AsyncLocalStorage } from "node:async_hooks";
import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { ClosedError, QueueFullError } from "../errors.ts";
import { namedEntries } from "../internal/names.ts";
import type { RunContext } from "../policy.ts";
import { type AbortSubject, abortCases } from "../testing/abort-suite.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Limiter } from "./limiter.ts";

const subjects = (["run", "drain", "empty", "below"] as const).map((verb): AbortSubject => ({
  name: `Limiter.${verb}`,
  open(clock) {
    const limit = new Limiter(1, { clock });
    const work = Promise.withResolvers<void>();
    void limit.run(() => work.promise);
    if (verb === "empty" || verb === "below") void limit.run(() => work.promise);
    return {
      call(options) {
        if (verb === "below") return limit.below(1, options);
        return verb === "run" ? limit.run(() => {}, options) : limit[verb](options);
      },
      satisfy: () => work.resolve(),
      state: () => ({ running: limit.running, waiting: limit.waiting }),
    };
  },
}));

for (const subject of subjects) for (const { title, run } of abortCases(subject)) it(title, run);

it("calls fn in the same turn when a slot is free, else when its turn comes", async () => {
  const limit = new Limiter(1);
  const log: string[] = [];
  const first = limit.run(() => void log.push("first"));
  const second = limit.run(() => void log.push("second"));
  expect([log, limit.running, limit.waiting]).toEqual([["first"], 1, 1]);
  await Promise.all([first, second]);
  expect([log, limit.running, limit.waiting]).toEqual([["first", "second"], 0, 0]);
});

it("turns away who finds all slots and places taken, and lets wait whom it is told to", async () => {
  const [reject, wait] = (["reject", "wait"] as const).map((whenFull) => new Limiter(1, { capacity: 1, whenFull }));
  const refused = Promise.allSettled(threeCalls(reject));
  expect(await Promise.all(threeCalls(wait))).toEqual([1, 2, 3]);
  expect(await refused).toMatchObject([{ value: 1 }, { value: 2 }, { reason: { code: "QUEUE_FULL", limit: 1 } }]);
  const bulkhead = new Limiter(1, { capacity: 0 });
  const running = bulkhead.run(turn);
  await expect(bulkhead.run(turn)).rejects.toThrow(QueueFullError);
  await running;
});

function threeCalls(limit = new Limiter(1)): Promise<number>[] {
  return [1, 2, 3].map((id) => limit.run(() => turn(id)));
}

it("hands fn a signal that aborts with the caller's, and without one with abort alone", async () => {
  const limit = new Limiter(3);
  const call = new AbortController();
  const signals = [call.signal, new AbortController().signal, undefined];
  const outcomes = Promise.allSettled(signals.map((signal) => limit.run(obey, { signal })));
  call.abort("caller");
  await turn();
  expect(limit.running).toBe(2);
  limit.abort("limiter");
  const reasons = (await outcomes).map((each) => each.status === "rejected" && each.reason);
  expect(reasons).toEqual(["caller", "limiter", "limiter"]);
});

it("leaves no listener on a signal that outlives its calls", async () => {
  const limit = new Limiter(2);
  const { signal } = new AbortController();
  const seen: (AbortSignal | undefined)[] = [];
  for (let times = 0; times < 3; times += 1) await limit.run((context) => void seen.push(context.signal), { signal });
  await expect(limit.run(fail, { signal })).rejects.toThrow("no");
  expect(getEventListeners(signal, "abort")).toHaveLength(0);
  limit.abort();
  expect(seen.map((each) => each?.aborted)).toEqual([false, false, false]);
});

it("ends all with the reason of abort, but keeps the slots until what runs has ended", async () => {
  const limit = new Limiter(2);
  const deaf = Promise.withResolvers<string>();
  let ran = false;
  const settled = Promise.allSettled([
    limit.run(() => deaf.promise),
    limit.run(obey),
    limit.run(() => void (ran = true)),
  ]);
  const reason = new Error("shutting down");
  limit.abort(reason);
  limit.abort(new Error("again"));
  expect([limit.running, limit.waiting, limit.closed]).toEqual([2, 0, true]);
  await expect(limit.run(() => {})).rejects.toThrow(ClosedError);
  const idle = limit.drain();
  await turn();
  expect(limit.running).toBe(1);
  deaf.resolve("finished all the same");
  await idle;
  expect(await settled).toEqual([
    { status: "fulfilled", value: "finished all the same" },
    { status: "rejected", reason },
    { status: "rejected", reason },
  ]);
  expect([ran, limit.running]).toEqual([false, 0]);
});

it.each(["the caller", "the limiter", "nobody but the limiter, without a signal,"])(
  "does not call fn when %s aborts between the grant and the call",
  async (who) => {
    const limit = new Limiter(1, { stallMs: who.startsWith("nobody") ? Infinity : 500 });
    const call = new AbortController();
    const first = Promise.withResolvers<void>();
    let ran = false;
    const held = limit.run(() => first.promise);
    const signal = who.startsWith("nobody") ? undefined : call.signal;
    const next = limit.run(() => void (ran = true), { signal });
    first.resolve();
    while (limit.waiting > 0) await Promise.resolve(); // up to the grant
    if (who === "the caller") call.abort("now");
    else limit.abort("now");
    await held;
    await expect(next).rejects.toBe("now");
    expect([ran, limit.running]).toEqual([false, 0]);
  },
);

it("runs what was accepted when it closes, and turns away newcomers and who waits to be accepted", async () => {
  const limit = new Limiter(1, { capacity: 1, whenFull: "wait" });
  const calls = Promise.allSettled([1, 2, 3, 4].map((id) => limit.run(() => turn(id))));
  limit.close();
  limit.close();
  await expect(limit.run(() => 5)).rejects.toThrow(ClosedError);
  await limit.drain();
  const outcomes = (await calls).map((each) => (each.status === "fulfilled" ? each.value : each.reason.code));
  expect(outcomes).toEqual([1, 2, "CLOSED", "CLOSED"]);
  expect(limit.stats()).toMatchObject({ completed: 2, rejected: 3, closed: true });
});

it("drains when the last call has ended, at once when nothing runs, and turns nobody away meanwhile", async () => {
  const limit = new Limiter(1);
  await limit.drain({ timeoutMs: 0 });
  const log: unknown[] = [];
  const call = async (id: number): Promise<void> => void log.push(await turn(id));
  for (const id of [1, 2]) void limit.run(() => call(id));
  const drained = [limit.drain(), limit.drain()].map((each) => each.then(() => log.push("drained")));
  void limit.run(() => call(3));
  await Promise.all(drained);
  expect(log).toEqual([1, 2, 3, "drained", "drained"]);
});

it("says what is wrong with an option", () => {
  expect(() => new Limiter(0)).toThrow("concurrency must be an integer >= 1 or Infinity, got 0");
  expect(() => new Limiter(1, { capacity: -1 })).toThrow("capacity must be an integer >= 0 or Infinity, got -1");
  expect(() => new Limiter(1, { whenFull: "drop" as "wait" })).toThrow(
    "whenFull must be one of reject, wait, drop-newest, drop-oldest, caller-runs, got drop",
  );
});

it("tells depth, age and counts by name", async () => {
  const clock = new VirtualClock();
  const limit = new Limiter(1, { name: "smtp", capacity: 3, clock });
  const call = new AbortController();
  const work = Promise.withResolvers<void>();
  const first = limit.run(() => work.promise);
  const calls = Promise.allSettled([
    limit.run(() => {}, { timeoutMs: 50 }),
    limit.run(() => {}, { signal: call.signal }),
    limit.run(() => {}),
    limit.run(() => {}),
  ]);
  await clock.advance(40);
  expect(limit.stats()).toMatchObject({ running: 1, waiting: 3, oldestWaitMs: 40, rejected: 1 });
  await clock.advance(10);
  call.abort();
  work.resolve();
  await Promise.all([first, calls]);
  expect(limit.stats()).toEqual({
    concurrency: 1,
    capacity: 3,
    running: 0,
    taken: 0,
    waiting: 0,
    oldestWaitMs: 0,
    completed: 2,
    rejected: 1,
    dropped: 0,
    cleared: 0,
    selfWaits: 0,
    timedOut: 1,
    aborted: 1,
    overdue: 0,
    abandoned: 0,
    paused: false,
    closed: false,
  });
  const entry = namedEntries().find(({ name }) => name === "smtp");
  expect([entry?.kind, entry?.target.deref()]).toEqual(["limiter", limit]);
});

it("C032: aborting a running and a waiting call together jams nothing, nor does a call with an aborted signal", async () => {
  const limit = new Limiter(1);
  const call = new AbortController();
  const ran: string[] = [];
  const first = limit.run(obey, { signal: call.signal });
  const second = limit.run(() => void ran.push("T2"), { signal: call.signal });
  const fourth = limit.run(() => void ran.push("T4"), { signal: AbortSignal.abort("before") });
  const outcomes = Promise.allSettled([first, second, fourth]);
  call.abort("both");
  await limit.run(() => void ran.push("T3"));
  expect((await outcomes).map((each) => each.status === "rejected" && each.reason)).toEqual(["both", "both", "before"]);
  expect([ran, limit.waiting, limit.running]).toEqual([["T3"], 0, 0]);
});

it("hands on the slot of each call however it ends, also where nobody looks for calls within calls", async () => {
  const limit = new Limiter(1, { stallMs: Infinity });
  const { signal } = new AbortController();
  const ends: readonly (() => unknown)[] = [fail, () => Promise.reject(new Error("no")), () => 1, () => turn(2)];
  const both = ends.flatMap((end) => [limit.run(end), limit.run(end, { signal })]);
  const outcomes = await Promise.allSettled([...both, ...ends.map((end) => limit.run(end))]);
  expect(outcomes.map(({ status }) => status === "fulfilled").join(" ")).toBe(
    "false false false false true true true true false false true true",
  );
  expect(limit.stats()).toMatchObject({ running: 0, waiting: 0, completed: 12 });
});

it("C035: 50 000 calls that return at once overflow no stack", async () => {
  const limit = new Limiter(1);
  const gate = Promise.withResolvers<void>();
  void limit.run(() => gate.promise);
  let done = 0;
  for (let call = 0; call < 50_000; call += 1) void limit.run(() => void (done += 1));
  gate.resolve();
  await limit.drain();
  expect([done, limit.stats().completed]).toEqual([50_000, 50_001]);
}, 10_000);

it("C036: 200 000 calls that wait are run within the limit for a test, which a line of quadratic cost is not", async () => {
  const limit = new Limiter(8);
  let done = 0;
  const fn = (): unknown => (done += 1);
  for (let call = 0; call < 200_000; call += 1) void limit.run(fn);
  await limit.drain();
  expect(done).toBe(200_000);
}, 10_000);

it.each(Array.from({ length: 11 }, (_, k) => k))(
  "C039: who comes %d microtasks after a slot was handed on neither overtakes nor exceeds the limit",
  async (k) => {
    const limit = new Limiter(1);
    const starts: string[] = [];
    let [running, most] = [0, 0];
    const task = (name: string, last?: () => unknown) => async (): Promise<void> => {
      starts.push(name);
      running += 1;
      most = Math.max(most, running);
      await turn();
      running -= 1;
      last?.();
    };
    const late = async (): Promise<void> => {
      for (let hop = 0; hop < k; hop += 1) await Promise.resolve();
      await limit.run(task("D"));
    };
    let side: Promise<void> | undefined;
    await Promise.all([limit.run(task("A", () => (side = late()))), limit.run(task("B"))]);
    await side;
    expect([starts, most]).toEqual([["A", "B", "D"], 1]);
  },
);

it("C042: a queued function runs in the async context of whoever submitted it", async () => {
  const limit = new Limiter(2);
  const context = new AsyncLocalStorage<number>();
  const seen = async (): Promise<unknown[]> => {
    const before = context.getStore();
    await turn();
    return [before, context.getStore()];
  };
  const calls = Array.from({ length: 10 }, (_, id) => context.run(id, () => limit.run(seen)));
  expect(await Promise.all(calls)).toEqual(Array.from({ length: 10 }, (_, id) => [id, id]));
});

it("C043: the limit holds after a failure, and each call gets its own outcome", async () => {
  const clock = new VirtualClock();
  const limit = new Limiter(5);
  let [running, most] = [0, 0];
  const task = async (id: number): Promise<number> => {
    most = Math.max(most, (running += 1));
    await new Promise<void>((onTimer) => void clock.setTimer(20, { onTimer }));
    running -= 1;
    if (id === 3) throw new Error("3");
    return id;
  };
  const calls = Promise.allSettled(Array.from({ length: 50 }, (_, id) => limit.run(() => task(id))));
  await clock.advance(200);
  const failed = [...(await calls).entries()].filter(([, { status }]) => status === "rejected").map(([id]) => id);
  expect([failed, most, limit.stats().completed]).toEqual([[3], 5, 50]);
});

it("C108: an aborted call frees its place at once, for the next to wait there", async () => {
  const clock = new VirtualClock();
  const limit = new Limiter(1, { capacity: 1, clock });
  const log: [what: string, at: number][] = [];
  const note = (what: string): unknown => log.push([what, clock.now()]);
  const a = limit.run(() => new Promise<void>((onTimer) => void clock.setTimer(100, { onTimer })));
  const call = new AbortController();
  const b = limit.run(() => note("B runs"), { signal: call.signal }).catch(() => note("B rejects"));
  await clock.advance(10);
  call.abort();
  await clock.advance(10);
  const c = limit.run(() => note("C runs"));
  await clock.advance(80);
  await Promise.all([a, b, c]);
  expect(log).toEqual([
    ["B rejects", 10],
    ["C runs", 100],
  ]);
});

it("C111: whatever a function or its thenable throws, its slot goes back once", async () => {
  const limit = new Limiter(1);
  const odd: PromiseLike<number>[] = [
    thenable({ get: fail }),
    thenable({ value: fail }),
    thenable({ value: (resolve: Settle, reject: Settle) => (resolve(1), reject(2), resolve(3), fail()) }),
    thenable({ value: (_: Settle, reject: Settle) => (reject(1), reject(2)) }),
  ];
  for (const each of odd) {
    await limit.run(() => each).catch(() => {});
    expect(limit.running).toBe(0);
  }
  await expect(limit.run(fail)).rejects.toThrow("no");
  let [running, most] = [0, 0];
  const task = async (): Promise<void> => {
    most = Math.max(most, (running += 1));
    await turn();
    running -= 1;
  };
  await Promise.all([limit.run(task), limit.run(task), limit.run(task)]);
  expect([most, limit.running, limit.stats().completed]).toEqual([1, 0, 8]);
});

type Settle = (value: unknown) => void;

function thenable(then: PropertyDescriptor): PromiseLike<number> {
  // oxlint-disable-next-line unicorn/no-thenable -- its oddness is what is tested
  return Object.defineProperty({} as PromiseLike<number>, "then", then);
}

it("C112: a call that its caller gave up on at 50 ms gives its slot back once, when it ends at 200 ms", async () => {
  const clock = new VirtualClock();
  const limit = new Limiter(10, { clock });
  const call = new AbortController();
  const deaf = (): Promise<void> => new Promise((onTimer) => void clock.setTimer(200, { onTimer }));
  clock.setTimer(50, { onTimer: () => call.abort() });
  void limit.run(deaf, { signal: call.signal });
  const free: number[] = [];
  for (let times = 0; times < 5; times += 1) {
    await clock.advance(50);
    free.push(limit.concurrency - limit.running);
  }
  expect(free).toEqual([9, 9, 9, 10, 10]); // at 50, 100, 150, 200, 250 ms
});

function fail(): never {
  throw new Error("no");
}

/** Ends when its signal aborts, with the reason. */
function obey({ signal }: RunContext): Promise<never> {
  return new Promise((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
}
