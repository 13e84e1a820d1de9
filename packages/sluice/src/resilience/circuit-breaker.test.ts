import { setImmediate as turn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { CircuitOpenError, QueueFullError } from "../errors.ts";
import type { RunContext } from "../policy.ts";
import { type AbortSubject, abortCases } from "../testing/abort-suite.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import {
  CircuitBreaker,
  type CircuitBreakerOptions,
  type CircuitChange,
  type CircuitOpening,
} from "./circuit-breaker.ts";
import { countWindow } from "./circuit-count-window.ts";
import { timeWindow } from "./circuit-time-window.ts";
import type { CircuitTrip } from "./circuit-trip.ts";
import { retry } from "./retry.ts";
import { timeout } from "./timeout.ts";

const subject: AbortSubject = {
  name: "CircuitBreaker.run",
  lacks: { waiting: "it calls fn at once", timeoutMs: "it never waits" },
  open() {
    const breaker = new CircuitBreaker();
    const calls: (() => void)[] = [];
    let isSatisfied = false;
    return {
      call: (options) =>
        breaker.run(() => (isSatisfied ? undefined : new Promise<void>((end) => void calls.push(end))), options),
      satisfy() {
        if (calls.length === 0) isSatisfied = true;
        calls.shift()?.();
      },
      state: () => ({ running: breaker.running }),
    };
  },
};
for (const { title, run } of abortCases(subject)) it(title, run);

const COOLDOWN_MS = 1_000;
const down = new Error("down");

function make(options: CircuitBreakerOptions = {}): {
  readonly clock: VirtualClock;
  readonly breaker: CircuitBreaker;
  readonly changes: string[];
} {
  const clock = new VirtualClock();
  const changes: string[] = [];
  const onStateChange = ({ from, to }: CircuitChange): unknown => changes.push(`${from} > ${to}`);
  return { clock, changes, breaker: new CircuitBreaker({ cooldownMs: COOLDOWN_MS, clock, onStateChange, ...options }) };
}

/** Calls that have begun and end when told to. */
function begin(breaker: CircuitBreaker, count: number): { readonly begun: number; succeed(): void; fail(): void }[] {
  return Array.from({ length: count }, () => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    let begun = 0;
    breaker
      .run(() => {
        begun += 1;
        return promise;
      })
      .catch(() => {});
    return { begun, succeed: () => resolve(), fail: () => reject(down) };
  });
}

async function failTimes(breaker: CircuitBreaker, count: number): Promise<void> {
  for (let call = 0; call < count; call += 1) await breaker.run(() => Promise.reject(down)).catch(() => {});
}

it("opens after so many failures in a row, and a success in between starts the count anew", async () => {
  const { breaker, changes } = make({ failures: 3 });
  await failTimes(breaker, 2);
  await breaker.run(() => 1);
  await failTimes(breaker, 2);
  expect([breaker.state, breaker.stats().failures]).toEqual(["closed", 2]);
  await failTimes(breaker, 1);
  expect([breaker.state, changes]).toEqual(["open", ["closed > open"]]);
});

it("J49: turns calls away while open without trying, and says when to come back", async () => {
  const { breaker, clock } = make();
  await failTimes(breaker, 5);
  await clock.advance(250);
  let called = false;
  const error: unknown = await breaker.run(() => (called = true)).catch((reason: unknown) => reason);
  expect([error, called]).toEqual([expect.any(CircuitOpenError), false]);
  expect(error).toMatchObject({ code: "CIRCUIT_OPEN", retryAfterMs: 750 });
});

it("J50, D05: half-opens by the clock though calls come all the time, with no timer of its own", async () => {
  const { breaker, clock, changes } = make();
  await failTimes(breaker, 5);
  const got: boolean[] = [];
  for (let call = 0; call < 10; call += 1) {
    await clock.advance(100);
    await breaker.run(() => got.push(true)).catch(() => got.push(false));
  }
  expect(got).toEqual([...Array.from({ length: 9 }, () => false), true]);
  expect([breaker.state, clock.timers]).toEqual(["closed", 0]);
  expect(changes).toEqual(["closed > open", "open > half-open", "half-open > closed"]);
});

it.each([
  [200, 1],
  [200, 3],
])(
  "J51, D07, S05: of %d calls that come together after the cooldown, %d reach the dependency",
  async (calls, maxTrials) => {
    const { breaker, clock } = make({ maxTrials });
    await failTimes(breaker, 5);
    await clock.advance(COOLDOWN_MS);
    expect(breaker.state).toBe("half-open");
    const trials = begin(breaker, calls).filter(({ begun }) => begun > 0);
    expect([trials.length, breaker.stats().rejected]).toEqual([maxTrials, calls - maxTrials]);
    trials[0]?.succeed();
    await turn();
    expect(breaker.state).toBe("closed");
  },
);

it.each([1, 3])("C095: lets no more than %d of 20 calls of one turn through while half-open", async (maxTrials) => {
  const { breaker, clock } = make({ maxTrials });
  await failTimes(breaker, 5);
  await clock.advance(COOLDOWN_MS);
  let reached = 0;
  const calls = Array.from({ length: 20 }, () => breaker.run(() => (reached += 1)));
  const refused = (await Promise.allSettled(calls)).filter(({ status }) => status === "rejected");
  expect([reached, refused.length]).toEqual([maxTrials, 20 - maxTrials]);
});

it("J49: opens for a new cooldown when the trial fails", async () => {
  const { breaker, clock, changes } = make();
  await failTimes(breaker, 5);
  await clock.advance(COOLDOWN_MS + 400);
  await failTimes(breaker, 1);
  await clock.advance(COOLDOWN_MS - 1);
  expect(breaker.state).toBe("open");
  await clock.advance(1);
  expect(breaker.state).toBe("half-open");
  expect(changes).toEqual(["closed > open", "open > half-open", "half-open > open"]);
});

it("C093: half-opens on time though a failure arrives after it has opened", async () => {
  const { breaker, clock } = make();
  const calls = begin(breaker, 6);
  for (const call of calls.slice(0, 5)) call.fail();
  await clock.advance(5);
  calls[5]?.fail();
  await clock.advance(COOLDOWN_MS - 5);
  expect(await breaker.run(() => "tried")).toBe("tried");
  expect(breaker.stats()).toMatchObject({ state: "closed", opened: 1 });
});

it("C097, J52: lets results of an earlier state move nothing, be they failures or successes", async () => {
  const { breaker, clock } = make();
  const [late, ...old] = begin(breaker, 11);
  await failTimes(breaker, 5);
  late?.succeed(); // would close a breaker that has just opened
  await turn();
  expect(breaker.state).toBe("open");
  await clock.advance(COOLDOWN_MS);
  await breaker.run(() => "trial");
  const next = breaker.run(() => "next");
  for (const call of old) call.fail();
  expect(await next).toBe("next");
  await turn();
  expect(breaker.stats()).toMatchObject({ state: "closed", failures: 0, running: 0 });
});

it("C099: counts each attempt of a retry around it, and ends the retry once it is open", async () => {
  const { breaker, clock } = make();
  const patient = retry({ retries: 2, baseMs: 0, clock });
  let reached = 0;
  const fail = (): never => {
    reached += 1;
    throw Object.assign(new Error("unavailable"), { status: 503 });
  };
  let attempts = 0;
  const attempt = ({ signal }: RunContext): Promise<never> => {
    attempts += 1;
    return breaker.run(fail, { signal });
  };
  const call = (): Promise<unknown> => patient.run(attempt).catch((e: unknown) => e);
  const [first, second] = [call(), call()];
  await clock.advance(10);
  expect([await first, await second]).toEqual([expect.objectContaining({ status: 503 }), expect.any(CircuitOpenError)]);
  expect([reached, attempts]).toEqual([5, 6]);
});

it("J53: takes no 400 for a failure, and gives its place back if it was a trial", async () => {
  const { breaker, clock } = make();
  const bad = Object.assign(new Error("bad request"), { status: 400 });
  for (let call = 0; call < 10; call += 1) await expect(breaker.run(() => Promise.reject(bad))).rejects.toBe(bad);
  expect(breaker.stats()).toMatchObject({ state: "closed", failures: 0 });
  await failTimes(breaker, 5);
  await clock.advance(COOLDOWN_MS);
  await expect(breaker.run(() => Promise.reject(bad))).rejects.toBe(bad);
  expect(breaker.stats()).toMatchObject({ state: "half-open", trials: 0 });
  await breaker.run(() => 1);
  expect(breaker.state).toBe("closed");
});

it("keeps the count of failures through an outcome that is ignored", async () => {
  const { breaker } = make({ failures: 2 });
  await failTimes(breaker, 1);
  await breaker.run(() => Promise.reject(new QueueFullError(1))).catch(() => {});
  await failTimes(breaker, 1);
  expect(breaker.state).toBe("open");
});

it("J53: takes a timeout inside for a failure, and the caller's abort for none", async () => {
  const { breaker, clock } = make({ failures: 1 });
  const quick = timeout(50, { clock });
  const call = new AbortController();
  const aborted = breaker.run(({ signal }) => hang(signal), { signal: call.signal });
  call.abort();
  await expect(aborted).rejects.toThrow("gave up");
  expect(breaker.state).toBe("closed");
  const timedOut = breaker.run(({ signal }) => quick.run((inner) => hang(inner.signal), { signal })).catch(() => {});
  await clock.advance(50);
  await timedOut;
  expect(breaker.state).toBe("open");
});

it("takes a synchronous throw for a failure, at once", async () => {
  const { breaker } = make({ failures: 1 });
  const result = breaker.run(() => {
    throw down;
  });
  expect(breaker.state).toBe("open");
  await expect(result).rejects.toBe(down);
});

it("judges results too, if told how", async () => {
  const { breaker } = make({
    failures: 1,
    classify: (outcome) => (outcome.status === "fulfilled" && outcome.value === "degraded" ? "failure" : "success"),
  });
  expect(await breaker.run(() => "degraded")).toBe("degraded");
  expect(breaker.state).toBe("open");
});

it("is not held half-open by a trial that hangs, whose outcome counts when it comes", async () => {
  const { breaker, clock } = make({ maxTrialMs: 300 });
  await failTimes(breaker, 5);
  await clock.advance(COOLDOWN_MS);
  const [hung] = begin(breaker, 1);
  await clock.advance(299);
  expect(begin(breaker, 1)[0]?.begun).toBe(0);
  await clock.advance(1);
  const [second] = begin(breaker, 1);
  expect([second?.begun, begin(breaker, 1)[0]?.begun, breaker.stats().trials]).toEqual([1, 0, 1]);
  hung?.succeed();
  await turn();
  expect(breaker.state).toBe("closed");
  second?.fail();
  await turn();
  expect(breaker.stats()).toMatchObject({ state: "closed", failures: 0 });
});

it("keeps its state right when classify throws, and rejects with what it threw", async () => {
  const broken = new Error("classify");
  const { breaker, clock } = make({
    failures: 1,
    classify(outcome) {
      if (outcome.status === "fulfilled") throw broken;
      return "failure";
    },
  });
  await failTimes(breaker, 1);
  await clock.advance(COOLDOWN_MS);
  await expect(breaker.run(() => 1)).rejects.toBe(broken);
  expect(breaker.stats()).toMatchObject({ state: "half-open", trials: 0, running: 0 });
});

it("keeps its state right when a listener throws, and hides neither its error nor the call's", async () => {
  const broken = new Error("listener");
  const { breaker } = make({
    failures: 1,
    onStateChange() {
      throw broken;
    },
  });
  const unhandled = await unhandledBy(() => expect(breaker.run(() => Promise.reject(down))).rejects.toBe(down));
  expect([breaker.state, unhandled]).toEqual(["open", [broken]]);
});

it("is in the new state already when it tells of it, also for a call that the listener makes", async () => {
  const seen: string[] = [];
  const clock = new VirtualClock();
  const breaker: CircuitBreaker = new CircuitBreaker({
    failures: 1,
    cooldownMs: COOLDOWN_MS,
    clock,
    onStateChange({ to }) {
      seen.push(`${to}, is ${breaker.state}`);
      if (to === "half-open") breaker.run(() => seen.push("slipped in")).catch(() => seen.push("turned away"));
    },
  });
  await failTimes(breaker, 1);
  await clock.advance(COOLDOWN_MS);
  await breaker.run(() => turn());
  expect(seen).toEqual(["open, is open", "half-open, is half-open", "turned away", "closed, is closed"]);
});

it("C092: opens again when the trial fails, though the window is empty, and admits one trial after the new cooldown", async () => {
  const { breaker, clock, changes } = make({ trip: timeWindow({ windowMs: 500, minCalls: 5 }) });
  await failTimes(breaker, 5);
  await clock.advance(COOLDOWN_MS);
  await failTimes(breaker, 1);
  expect([breaker.state, breaker.retryAfterMs, breaker.stats().failures]).toEqual(["open", COOLDOWN_MS, 0]);
  await clock.advance(COOLDOWN_MS);
  const trials = begin(breaker, 20).filter(({ begun }) => begun > 0);
  trials[0]?.succeed();
  await turn();
  expect([trials.length, breaker.state]).toEqual([1, "closed"]);
  expect(changes.slice(1, 4)).toEqual(["open > half-open", "half-open > open", "open > half-open"]);
});

it("J54: a storm that fails every other call never trips a count in a row, but a rate", async () => {
  const inARow = make({ failures: 5 }).breaker;
  const rate = make({ trip: countWindow({ size: 20, failureRate: 0.5 }) }).breaker;
  for (let call = 0; call < 100; call += 1)
    for (const breaker of [inARow, rate])
      await breaker.run(() => (call % 2 === 0 ? 1 : Promise.reject(down))).catch(() => {});
  expect([inARow.state, rate.state]).toEqual(["closed", "open"]);
});

it("closes only after so many successful trials, one by one or together, and opens at the first that fails", async () => {
  const { breaker, clock } = make({ failures: 1, successes: 3, maxTrials: 2 });
  await failTimes(breaker, 1);
  await clock.advance(COOLDOWN_MS);
  const trials = begin(breaker, 3);
  expect(trials.map(({ begun }) => begun)).toEqual([1, 1, 0]);
  trials[0]?.succeed();
  trials[1]?.succeed();
  await turn();
  expect(breaker.state).toBe("half-open");
  await failTimes(breaker, 1);
  await clock.advance(COOLDOWN_MS);
  for (let call = 0; call < 3; call += 1) {
    expect(breaker.state).toBe("half-open"); // the two of before count no more
    await breaker.run(() => 1);
  }
  expect(breaker.state).toBe("closed");
});

it("takes a slow trial for a failed one, if its trip looks at the time", async () => {
  const { breaker, clock } = make({ trip: countWindow({ size: 1, slowMs: 100 }) });
  const slow = async (): Promise<void> => {
    const [call] = begin(breaker, 1);
    await clock.advance(100);
    call?.succeed();
    await turn();
  };
  await slow();
  expect(breaker.state).toBe("open");
  await clock.advance(COOLDOWN_MS);
  await slow();
  expect([breaker.state, breaker.stats().opened]).toEqual(["open", 2]);
  await clock.advance(COOLDOWN_MS);
  await breaker.run(() => 1);
  expect(breaker.state).toBe("closed");
});

it("opens for a new cooldown when it has been half-open for too long, at the next call", async () => {
  const { breaker, clock } = make({ failures: 1, maxTrialMs: 100, maxHalfOpenMs: 250 });
  await failTimes(breaker, 1);
  await clock.advance(COOLDOWN_MS + 500); // time without a trial doesn't count
  const [hung] = begin(breaker, 1);
  await clock.advance(249);
  expect(begin(breaker, 1)[0]?.begun).toBe(1);
  await clock.advance(1);
  expect(begin(breaker, 1)[0]?.begun).toBe(0);
  expect([breaker.state, breaker.retryAfterMs]).toEqual(["open", COOLDOWN_MS]);
  hung?.succeed();
  await turn();
  expect(breaker.stats()).toMatchObject({ state: "open", opened: 2, openings: 2, running: 1 });
});

it("asks the cooldown each time it opens, with what opened it and how often it has since it was closed", async () => {
  const asked: unknown[] = [];
  const cooldown = ({ openings, outcome }: CircuitOpening): number => {
    asked.push([openings, outcome?.status === "rejected" ? outcome.reason : outcome]);
    return 100 * openings;
  };
  const { breaker, clock } = make({ failures: 1, cooldown });
  await failTimes(breaker, 1);
  await clock.advance(100);
  await failTimes(breaker, 1);
  expect(breaker.retryAfterMs).toBe(200);
  await clock.advance(200);
  await breaker.run(() => 1);
  await failTimes(breaker, 1);
  expect([asked, breaker.retryAfterMs]).toEqual([
    [
      [1, down],
      [2, down],
      [1, down],
    ],
    100,
  ]);
});

it("stays as it was when the cooldown throws or is none, and rejects with the error", async () => {
  const broken = new Error("cooldown");
  const throwing = make({
    failures: 1,
    cooldown: () => {
      throw broken;
    },
  }).breaker;
  await expect(throwing.run(() => Promise.reject(down))).rejects.toBe(broken);
  const endless = make({ failures: 1, cooldown: () => Infinity }).breaker;
  const rule = "what cooldown returns must be finite and >= 0, got Infinity";
  await expect(endless.run(() => Promise.reject(down))).rejects.toThrow(RangeError(rule));
  for (const breaker of [throwing, endless])
    expect(breaker.stats()).toMatchObject({ state: "closed", running: 0, opened: 0 });
});

it("turns every call away while its mode is isolated, whatever its state, which goes on by the clock", async () => {
  const { breaker, clock, changes } = make({ failures: 1 });
  const [under] = begin(breaker, 1);
  breaker.mode = "isolated";
  const error: unknown = await breaker.run(() => 1).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ code: "CIRCUIT_OPEN", retryAfterMs: Infinity });
  under?.fail(); // counts as before
  await turn();
  await clock.advance(COOLDOWN_MS);
  await expect(breaker.run(() => 1)).rejects.toThrow(CircuitOpenError);
  expect([breaker.state, changes]).toEqual(["half-open", ["closed > open"]]);
  breaker.mode = "normal";
  await breaker.run(() => 1);
  expect(breaker.stats()).toMatchObject({ state: "closed", rejected: 2 });
});

it("passes every call while its mode is disabled, and counts none", async () => {
  const { breaker } = make({ failures: 1 });
  breaker.mode = "disabled";
  await failTimes(breaker, 5);
  expect(breaker.stats()).toMatchObject({ state: "closed", failures: 0, running: 0 });
  breaker.open(COOLDOWN_MS);
  expect(await breaker.run(() => "passed")).toBe("passed");
  expect(breaker.stats()).toMatchObject({ state: "open", rejected: 0 });
});

it("does all but turn calls away while its mode is metrics-only: who would be turned away passes, and moves nothing", async () => {
  const { breaker, clock, changes } = make({ failures: 1 });
  breaker.mode = "metrics-only";
  await failTimes(breaker, 2);
  expect(await breaker.run(() => "passed")).toBe("passed");
  expect(breaker.stats()).toMatchObject({ state: "open", rejected: 2, opened: 1 });
  await clock.advance(COOLDOWN_MS);
  const [trial, other] = begin(breaker, 2);
  other?.fail();
  await turn();
  expect(breaker.stats()).toMatchObject({ state: "half-open", rejected: 3, trials: 1, running: 1 });
  trial?.succeed();
  await turn();
  expect(changes).toEqual(["closed > open", "open > half-open", "half-open > closed"]);
});

it("can be opened and closed by hand, which ends what was under way", async () => {
  const { breaker, clock, changes } = make({ failures: 1 });
  const [late] = begin(breaker, 1);
  breaker.open(500);
  expect([breaker.state, breaker.retryAfterMs]).toEqual(["open", 500]);
  breaker.open(100);
  await clock.advance(100);
  expect(await breaker.run(() => "trial")).toBe("trial");
  breaker.open(0);
  expect(breaker.state).toBe("half-open");
  breaker.close();
  breaker.close();
  late?.fail();
  await turn();
  expect(breaker.stats()).toMatchObject({ state: "closed", openings: 0, failures: 0 });
  expect(changes).toEqual([
    "closed > open",
    "open > half-open",
    "half-open > closed",
    "closed > half-open",
    "half-open > closed",
  ]);
  expect(() => breaker.open(-1)).toThrow(RangeError);
  expect(() => breaker.open(1, 0)).toThrow(RangeError);
});

it("opens by a rule of one's own, and rejects with what that throws", async () => {
  const broken = new Error("trip");
  const trip = (): CircuitTrip => ({
    failures: 0,
    record(isFailure) {
      if (!isFailure) throw broken;
      return true;
    },
  });
  const { breaker } = make({ trip });
  await expect(breaker.run(() => 1)).rejects.toBe(broken);
  expect(breaker.stats()).toMatchObject({ state: "closed", running: 0 });
  await failTimes(breaker, 1);
  expect(breaker.state).toBe("open");
});

it("refuses bad options, and rejects instead of throwing", async () => {
  const bad = [{ failures: 0 }, { failures: 1.5 }, { cooldownMs: 0 }, { cooldownMs: Infinity }, { maxTrials: 0 }];
  const limits = [{ maxTrialMs: 0 }, { maxTrialMs: Infinity }, { maxHalfOpenMs: 0 }, { successes: 0 }];
  for (const options of [...bad, ...limits]) expect(() => new CircuitBreaker(options)).toThrow(RangeError);
  for (const name of ["classify", "cooldown", "onStateChange", "trip"])
    expect(() => new CircuitBreaker({ [name]: 1 })).toThrow(`${name} must be a function, got number`);
  await expect(new CircuitBreaker().run(() => 1, { signal: {} as AbortSignal })).rejects.toThrow(TypeError);
});

it("does what the drawing says under any plan of calls, outcomes and pauses", () => {
  const step = fc.constantFrom("call", "call", "call", "succeed", "fail", "fail", "ignore", "400 ms", "1000 ms");
  const few = fc.integer({ min: 1, max: 3 });
  const options = fc.record({ failures: few, maxTrials: few, successes: few });
  const plans = fc.asyncProperty(options, fc.array(step, { maxLength: 40 }), fc.infiniteStream(fc.nat()), play);
  return fc.assert(plans, { numRuns: 1_000 });
});

interface ModelCall {
  readonly era: number;
  readonly end: (how: "succeed" | "fail" | "ignore") => void;
  /** When its place among the trials is free again, though it goes on. */
  readonly until: number;
}

/** The breaker as it is told in words: eras of closed and of tripped, calls of a past era move nothing. */
async function play(
  { failures, maxTrials, successes }: { failures: number; maxTrials: number; successes: number },
  plan: readonly string[],
  picks: Iterator<number>,
): Promise<void> {
  const { breaker, clock } = make({ failures, maxTrials, successes, maxTrialMs: 700 });
  let [era, isTripped, since, inARow, succeeded] = [0, false, 0, 0, 0];
  const calls: ModelCall[] = [];
  const state = (): string => {
    if (!isTripped) return "closed";
    return clock.now() < since + COOLDOWN_MS ? "open" : "half-open";
  };
  for (const step of plan) {
    if (step.endsWith("ms")) await clock.advance(Number.parseInt(step, 10));
    else if (step === "call") {
      const trials = calls.filter((each) => each.era === era && each.until > clock.now()).length;
      const passes = state() === "closed" || (state() === "half-open" && trials < maxTrials);
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const ends = { succeed: resolve, fail: () => reject(down), ignore: () => reject(new QueueFullError(1)) };
      let begun = false;
      breaker.run(() => ((begun = true), promise)).catch(() => {});
      expect(begun).toBe(passes);
      if (passes) calls.push({ era, until: clock.now() + 700, end: (how) => ends[how]() });
    } else {
      const index = picks.next().value % (calls.length || 1);
      const [call] = calls.splice(index, 1);
      call?.end(step as "succeed" | "fail" | "ignore");
      await turn();
      if (call?.era === era && step === "succeed") {
        inARow = 0;
        succeeded += 1;
        if (isTripped && succeeded >= successes) [isTripped, era] = [false, era + 1];
      } else if (call?.era === era && step === "fail") {
        inARow += 1;
        if (isTripped || inARow >= failures)
          [isTripped, since, era, inARow, succeeded] = [true, clock.now(), era + 1, 0, 0];
      }
    }
    expect(breaker.state).toBe(state());
    expect(breaker.running).toBe(calls.length);
    expect(breaker.stats().trials).toBeLessThanOrEqual(maxTrials);
  }
  expect(clock.timers).toBe(0);
}

/** Never settles by itself, and has an error of its own to say that it was aborted. */
function hang(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => signal?.addEventListener("abort", () => reject(new Error("gave up"))));
}

/** What is unhandled while `act` goes on; nobody else is told. */
async function unhandledBy(act: () => Promise<unknown>): Promise<unknown[]> {
  const listeners = process.rawListeners("unhandledRejection") as NodeJS.UnhandledRejectionListener[];
  const seen: unknown[] = [];
  process.removeAllListeners("unhandledRejection");
  process.on("unhandledRejection", (reason) => seen.push(reason));
  try {
    await act();
    await turn();
  } finally {
    process.removeAllListeners("unhandledRejection");
    for (const listener of listeners) process.on("unhandledRejection", listener);
  }
  return seen;
}
