import { AsyncLocalStorage } from "node:async_hooks";
import { getEventListeners } from "node:events";
import * as fc from "fast-check";
import { expect, it, vi } from "vitest";
import { sleep } from "../clock/sleep.ts";
import { OverloadedError, TimeoutError } from "../errors.ts";
import { enable } from "../observe/enable.ts";
import { onEvent } from "../observe/events.ts";
import { named } from "../observe/named.ts";
import { abortCases, type AbortSubject } from "../testing/abort-suite.ts";
import { turn } from "../testing/turn.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import type {
  AdaptiveLimiterOptions,
  LimitSample,
  LimitStrategy,
  LineDiscipline,
  ShedRule,
} from "./adaptive-limiter-options.ts";
import { AdaptiveLimiter } from "./adaptive-limiter.ts";
import { codel } from "./codel.ts";
import { shedByCriticality } from "./shed.ts";

class Boom extends Error {}

function fail(): never {
  throw new Boom();
}

const fixed: LimitStrategy = () => ({ next: (limit) => limit });

/** Limits that are handed out one after the other, and the samples that were given for them. */
function scripted(...limits: number[]): { readonly strategy: LimitStrategy; readonly samples: LimitSample[] } {
  const samples: LimitSample[] = [];
  const next = (limit: number, sample: LimitSample): number => {
    samples.push(sample);
    return limits.shift() ?? limit;
  };
  return { strategy: () => ({ next }), samples };
}

/** With a fixed limit of 1. */
function single(options: AdaptiveLimiterOptions = {}): {
  readonly limiter: AdaptiveLimiter;
  readonly clock: VirtualClock;
} {
  const clock = new VirtualClock();
  return { clock, limiter: new AdaptiveLimiter(fixed, { initialConcurrency: 1, clock, ...options }) };
}

it("calls fn in the same turn when a place is free, else when its turn comes, first come, first served", async () => {
  const { limiter } = single();
  const order: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const first = limiter.run(() => (order.push("a"), promise));
  expect(order).toEqual(["a"]);
  const others = ["b", "c"].map((id) => limiter.run(() => order.push(id)));
  expect([limiter.running, limiter.waiting]).toEqual([1, 2]);
  resolve();
  await Promise.all([first, ...others]);
  expect(order).toEqual(["a", "b", "c"]);
  expect(limiter.stats()).toMatchObject({ running: 0, waiting: 0, completed: 3 });
});

it("tells the strategy of each call: when it ran, beside how many, and whether it met overload", async () => {
  const { strategy, samples } = scripted();
  const clock = new VirtualClock();
  const limiter = new AdaptiveLimiter(strategy, { clock });
  const calls = [
    limiter.run(() => sleep(10, { clock })),
    limiter.run(() => sleep(20, { clock }).then(() => Promise.reject(Object.assign(new Boom(), { status: 503 })))),
    limiter.run(() => sleep(30, { clock }).then(() => Promise.reject(new Boom()))),
  ];
  const settled = Promise.allSettled(calls);
  await clock.advance(30);
  await settled;
  expect(samples).toEqual([
    { startedAt: 0, endedAt: 10, running: 1, isOverload: false },
    { startedAt: 0, endedAt: 20, running: 2, isOverload: true },
  ]); // a quick failure is no sign of health
  expect(limiter.stats()).toMatchObject({ completed: 3, overloads: 1 });
});

it("lets in as many as a raised limit allows, in the turn in which it is raised", async () => {
  const { strategy } = scripted(3);
  const limiter = new AdaptiveLimiter(strategy, { initialConcurrency: 1 });
  const { promise, resolve } = Promise.withResolvers<void>();
  let running = 0;
  const first = limiter.run(() => promise);
  const others = Array.from({ length: 5 }, () => limiter.run(() => ((running += 1), new Promise(() => {}))));
  resolve();
  await first;
  await turn();
  expect([running, limiter.waiting, limiter.concurrency]).toEqual([3, 2, 3]);
  expect(others).toHaveLength(5);
});

it("lets nobody in while more run than a lowered limit allows", async () => {
  const { strategy } = scripted(1, 1, 1, 1);
  const clock = new VirtualClock();
  const limiter = new AdaptiveLimiter(strategy, { initialConcurrency: 3, clock });
  const calls = [1, 2, 3].map((n) => limiter.run(() => sleep(n * 10, { clock })));
  const last = limiter.run(() => clock.now());
  await clock.advance(30);
  await Promise.all(calls);
  expect(await last).toBe(30);
});

it.each([
  [0, 20],
  [-5, 20],
  [Number.NaN, 20],
  [0.5, 2],
  [2.9, 2],
  [1e9, 50],
  [Infinity, 50],
])("stays within its bounds if the strategy says %d", async (next, expected) => {
  const limiter = new AdaptiveLimiter(scripted(next).strategy, { minConcurrency: 2, maxConcurrency: 50 });
  await limiter.run(() => 1);
  expect(limiter.concurrency).toBe(expected);
});

it("ignores a call that fails after its caller's abort", async () => {
  const { strategy, samples } = scripted();
  const call = new AbortController();
  const limiter = new AdaptiveLimiter(strategy);
  const run = limiter.run(() => Promise.reject(new TimeoutError(5)), { signal: call.signal });
  call.abort();
  await expect(run).rejects.toThrow(TimeoutError);
  expect(samples).toEqual([]);
  expect(limiter.running).toBe(0);
});

it("gives the place back when classify or the strategy throws, and rejects the call with that", async () => {
  for (const limiter of [
    new AdaptiveLimiter(fixed, { initialConcurrency: 1, classify: fail }),
    new AdaptiveLimiter(() => ({ next: fail }), { initialConcurrency: 1 }),
  ]) {
    await expect(limiter.run(() => 1)).rejects.toThrow(Boom);
    await expect(limiter.run(fail)).rejects.toThrow(Boom);
    expect(limiter.stats()).toMatchObject({ running: 0, completed: 2 });
  }
});

it("lets the next go on when the clock throws as a call is to begin that had waited", async () => {
  const { limiter, clock } = single();
  const { promise, resolve } = Promise.withResolvers<void>();
  const first = limiter.run(() => promise);
  const second = limiter.run(() => "second");
  const third = limiter.run(() => "third");
  vi.spyOn(clock, "now").mockReturnValueOnce(0).mockImplementationOnce(fail); // the end of the first, and then
  resolve();
  await first;
  await expect(second).rejects.toThrow(Boom);
  expect([await third, limiter.running, limiter.waiting]).toEqual(["third", 0, 0]);
});

it("C111: an outcome that is judged by a hook that throws gives its place back once", async () => {
  const { limiter, clock } = single({ classify: fail });
  await expect(limiter.run(() => 1)).rejects.toThrow(Boom);
  let [running, peak] = [0, 0];
  const work = async (): Promise<void> => {
    peak = Math.max(peak, (running += 1));
    await sleep(20, { clock });
    running -= 1;
  };
  const calls = Promise.allSettled([1, 2, 3].map(() => limiter.run(work)));
  await clock.advance(60);
  await calls;
  expect([peak, limiter.running]).toEqual([1, 0]);
});

it("C108: an aborted call that waits frees its place at once, for the next to wait there", async () => {
  const { limiter, clock } = single({ maxWaiting: 1 });
  const call = new AbortController();
  const first = limiter.run(() => sleep(100, { clock }));
  const second = limiter.run(() => 1, { signal: call.signal });
  await expect(limiter.run(() => 1)).rejects.toThrow(OverloadedError);
  call.abort(new Boom());
  expect(limiter.waiting).toBe(0);
  await expect(second).rejects.toThrow(Boom);
  const third = limiter.run(() => clock.now());
  await clock.advance(100);
  expect([await first, await third]).toEqual([undefined, 100]);
  expect(limiter.stats()).toMatchObject({ rejected: 1, aborted: 1, completed: 2 });
});

it("C112: a call that its caller gave up on at 50 ms gives its place back once, when it ends at 200 ms", async () => {
  const { limiter, clock } = single();
  const call = new AbortController();
  const run = limiter.run(() => sleep(200, { clock }), { signal: call.signal });
  await clock.advance(50);
  call.abort();
  expect(limiter.running).toBe(1);
  await clock.advance(150);
  await run;
  expect(limiter.running).toBe(0);
});

it("doesn't call fn if the signal aborts between the grant and the call, and gives the place to the next", async () => {
  const { limiter } = single();
  const { promise, resolve } = Promise.withResolvers<void>();
  const call = new AbortController();
  void limiter.run(() => promise);
  let calls = 0;
  const second = limiter.run(() => (calls += 1), { signal: call.signal });
  const third = limiter.run(() => 3);
  resolve();
  await promise; // goes on behind the grant, and before what was granted
  expect(limiter.waiting).toBe(1);
  call.abort(new Boom());
  await expect(second).rejects.toThrow(Boom);
  expect(await third).toBe(3);
  expect(calls).toBe(0);
  expect(limiter.stats()).toMatchObject({ running: 0, completed: 2, aborted: 1 });
});

it("lets a critical call go before others, and a sheddable one after, unless priorities say otherwise", async () => {
  const { limiter, clock } = single();
  const order: string[] = [];
  const first = limiter.run(() => sleep(10, { clock }));
  const calls = [
    limiter.run(() => order.push("sheddable"), { criticality: "sheddable" }),
    limiter.run(() => order.push("normal")),
    limiter.run(() => order.push("critical"), { criticality: "critical" }),
    limiter.run(() => order.push("first"), { criticality: "sheddable", priority: 5 }),
  ];
  await clock.advance(10);
  await Promise.all([first, ...calls]);
  expect(order).toEqual(["first", "critical", "normal", "sheddable"]);
});

it("says when to come back: by how long calls take, and how many wait", async () => {
  const clock = new VirtualClock();
  const limiter = new AdaptiveLimiter(fixed, { initialConcurrency: 2, maxWaiting: 3, clock });
  const runs = Array.from({ length: 5 }, () => limiter.run(() => sleep(100, { clock })));
  await clock.advance(100);
  await Promise.all(runs.slice(0, 2));
  runs.push(...[1, 2].map(() => limiter.run(() => sleep(100, { clock }))));
  const error = await limiter.run(() => 1).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(OverloadedError);
  expect(error).toMatchObject({ code: "OVERLOADED", retryAfterMs: (100 * 4) / 2 });
  await clock.advance(400);
  await Promise.all(runs);
});

it("says so of rules that were handed in uncalled", async () => {
  const { limiter } = single({ shed: shedByCriticality as unknown as ShedRule });
  await expect(limiter.run(() => 1)).rejects.toThrow("what shed returns must be a boolean, got function");
  expect(limiter.stats()).toMatchObject({ running: 0, waiting: 0, shed: 0 });
  expect(() => single({ discipline: codel as unknown as LineDiscipline })).toThrow(
    "what discipline returns must be an object with a method join, got function",
  );
});

it("is turned away by `shed` before it joins any line", async () => {
  const seen: unknown[] = [];
  const { limiter } = single({ shed: (criticality, load) => (seen.push([criticality, load]), load >= 2) });
  void limiter.run(() => new Promise(() => {}));
  void limiter.run(() => 1, { criticality: "sheddable" });
  await expect(limiter.run(() => 1, { criticality: "critical" })).rejects.toThrow(OverloadedError);
  expect(seen).toEqual([
    ["normal", 0],
    ["sheddable", 1],
    ["critical", 2],
  ]);
  expect(limiter.stats()).toMatchObject({ waiting: 1, shed: 1, rejected: 0 });
});

it("tells a caller's own timeout from the discipline's", async () => {
  const { limiter, clock } = single({ discipline: codel({ intervalMs: 100 }) });
  void limiter.run(() => new Promise(() => {}));
  const hurried = limiter.run(() => 1, { timeoutMs: 50 });
  const patient = limiter.run(() => 1, { timeoutMs: 500 });
  const aborted = limiter.run(() => 1, { signal: AbortSignal.any([]) });
  const call = new AbortController();
  const byReason = limiter.run(() => 1, { signal: call.signal });
  const outcomes = Promise.allSettled([hurried, patient, aborted, byReason]);
  call.abort(new TimeoutError(7)); // as a deadline's signal does
  await clock.advance(100);
  expect((await outcomes).map((each) => each.status === "rejected" && (each.reason as { code: string }).code)).toEqual([
    "TIMEOUT",
    "OVERLOADED",
    "OVERLOADED",
    "TIMEOUT",
  ]);
  expect(limiter.stats()).toMatchObject({ timedOut: 1, expired: 2, aborted: 1, waiting: 0 });
  expect(clock.timers).toBe(0);
});

it("keeps the async context of whoever called", async () => {
  const { limiter, clock } = single();
  const store = new AsyncLocalStorage<string>();
  void limiter.run(() => sleep(10, { clock }));
  const seen = ["a", "b"].map((id) => store.run(id, () => limiter.run(() => store.getStore())));
  await clock.advance(10);
  expect(await Promise.all(seen)).toEqual(["a", "b"]);
});

it("is seen: by name, by what it turns away, and by who holds its places", async () => {
  const { limiter } = single({ maxWaiting: 0, name: "search" });
  const events: string[] = [];
  const stop = onEvent(({ name, subject }) => events.push(`${name} ${subject.kind} ${subject.name}`));
  using _ = enable();
  const { promise, resolve } = Promise.withResolvers<void>();
  const run = limiter.run(() => promise);
  await expect(limiter.run(() => 1)).rejects.toThrow(OverloadedError);
  await turn();
  stop();
  expect(events).toEqual(["rejected adaptive-limiter search"]);
  expect(named().find(({ name }) => name === "search")?.stats).toEqual(limiter.stats());
  resolve();
  await run;
});

it.each([
  [{ minConcurrency: 0 }, "minConcurrency must be an integer >= 1, got 0"],
  [{ minConcurrency: 5, maxConcurrency: 4 }, "maxConcurrency must be an integer >= 5, got 4"],
  [{ minConcurrency: 5, initialConcurrency: 4 }, "initialConcurrency must be an integer >= 5, got 4"],
  [{ maxConcurrency: 5, initialConcurrency: 6 }, "initialConcurrency must be <= maxConcurrency of 5, got 6"],
  [{ maxWaiting: -1 }, "maxWaiting must be an integer >= 0 or Infinity, got -1"],
])("refuses %j", (options, why) => {
  expect(() => new AdaptiveLimiter(fixed, options)).toThrow(why);
});

it("refuses to go without a strategy, and calls whose criticality or priority it doesn't know", async () => {
  expect(() => new AdaptiveLimiter({} as never)).toThrow("strategy must be a function, got object");
  for (const name of ["discipline", "shed", "classify"])
    expect(() => new AdaptiveLimiter(fixed, { [name]: {} })).toThrow(`${name} must be a function, got object`);
  expect(new AdaptiveLimiter(fixed, { maxConcurrency: 5 }).concurrency).toBe(5);
  expect(new AdaptiveLimiter(fixed, { minConcurrency: 50 }).concurrency).toBe(50);
  const { limiter } = single();
  await expect(limiter.run(() => 1, { criticality: "vital" as never })).rejects.toThrow(
    "criticality must be one of critical, normal, sheddable, got vital",
  );
  await expect(limiter.run(() => 1, { priority: Number.NaN })).rejects.toThrow(RangeError);
  expect(limiter.running).toBe(0);
});

it("keeps I1 to I5 under any plan of calls, ends, aborts, timeouts and limits", () => {
  const step = fc.constantFrom(
    ...([
      "run",
      "run",
      "critical",
      "sheddable",
      "hurry",
      "end",
      "end",
      "fail",
      "abort",
      "10 ms",
      "settle",
      "up",
      "down",
    ] as const),
  );
  const plans = fc.asyncProperty(fc.boolean(), fc.array(step, { maxLength: 40 }), play);
  return fc.assert(plans, { numRuns: 500 });
});

async function play(isControlled: boolean, plan: readonly string[]): Promise<void> {
  const clock = new VirtualClock();
  let wanted = 2;
  const discipline = isControlled ? codel({ targetMs: 5, intervalMs: 15 }) : undefined;
  const options = { initialConcurrency: 2, maxConcurrency: 4, maxWaiting: 4, discipline, clock };
  const limiter = new AdaptiveLimiter(() => ({ next: () => wanted }), options);
  const running: ((error?: Error) => void)[] = [];
  let call = new AbortController();
  let made = 0;
  const work = (): Promise<void> =>
    new Promise((resolve, reject) => running.push((error) => (error === undefined ? resolve() : reject(error))));
  const run = (more: object): void => {
    made += 1;
    limiter.run(work, { signal: call.signal, ...more }).catch(() => {});
  };
  for (const kind of [...plan, "settle"]) {
    if (kind === "run") run({});
    else if (kind === "critical" || kind === "sheddable") run({ criticality: kind });
    else if (kind === "hurry") run({ timeoutMs: 10 });
    else if (kind === "end") running.shift()?.();
    else if (kind === "fail") running.shift()?.(Object.assign(new Boom(), { status: 503 }));
    else if (kind === "abort") call = (call.abort(), new AbortController());
    else if (kind === "up") wanted = Math.min(4, wanted + 1);
    else if (kind === "down") wanted = Math.max(1, wanted - 1);
    else if (kind === "10 ms") await clock.advance(10);
    else await turn();
    const { completed, rejected, shed, expired, timedOut, aborted, waiting, ...stats } = limiter.stats();
    expect(stats.running + waiting + completed + rejected + shed + expired + timedOut + aborted).toBe(made); // I5
    expect(limiter.running < limiter.concurrency && waiting > 0).toBe(false); // I2
    expect(limiter.concurrency >= 1 && limiter.concurrency <= 4).toBe(true); // I4
    expect(getEventListeners(call.signal, "abort").length).toBeLessThanOrEqual(1);
    if (kind === "settle") expect(limiter.running).toBe(running.length); // I1
  }
}

const subject: AbortSubject = {
  name: "AdaptiveLimiter.run",
  open(clock) {
    const limiter = new AdaptiveLimiter(fixed, { initialConcurrency: 1, clock });
    const { promise, resolve } = Promise.withResolvers<void>();
    void limiter.run(() => promise);
    return {
      call: (options) => limiter.run(() => {}, options),
      satisfy: () => resolve(),
      state: () => ({ running: limiter.running, waiting: limiter.waiting }),
    };
  },
};

for (const { title, run } of abortCases(subject)) it(title, run);
