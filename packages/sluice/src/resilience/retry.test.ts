import { AsyncLocalStorage } from "node:async_hooks";
import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, it, vi } from "vitest";
import { Deadline } from "../clock/deadline.ts";
import { sleep } from "../clock/sleep.ts";
import { CircuitOpenError, DeadlineError, TimeoutError } from "../errors.ts";
import { Semaphore } from "../sync/semaphore.ts";
import { type AbortSubject, abortCases } from "../testing/abort-suite.ts";
import { seededRandom } from "../testing/seeded-random.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { compose } from "./compose.ts";
import type { RetryContext, RetryOptions } from "./retry-options.ts";
import { retry } from "./retry.ts";
import { timeout } from "./timeout.ts";

const lacks = { timeoutMs: "it bounds admission, and nobody waits to be admitted" };

const subjects: readonly AbortSubject[] = [
  {
    name: "Retry.run, between attempts,",
    lacks,
    open(clock) {
      const policy = retry({ random: () => 1, clock });
      let isSatisfied = false;
      return {
        call: (options) => policy.run(({ attempt }) => attempt > 1 || isSatisfied || unavailable(), options),
        satisfy() {
          isSatisfied = policy.stats().waiting === 0;
          return clock.advance(100);
        },
        state: () => ({ waiting: policy.stats().waiting }),
      };
    },
  },
  {
    name: "Retry.run, in an attempt that ignores its signal,",
    lacks,
    open(clock) {
      const policy = retry({ clock });
      const attempts: (() => void)[] = [];
      let isSatisfied = false;
      return {
        call(options) {
          const { promise, resolve } = Promise.withResolvers<void>();
          const result = policy.run(() => {
            if (isSatisfied) resolve();
            else attempts.push(resolve);
            return promise;
          }, options);
          result.catch(() => attempts.splice(attempts.indexOf(resolve), 1));
          return result;
        },
        satisfy() {
          isSatisfied = attempts.length === 0;
          attempts.shift()?.();
        },
        state: () => ({ waiting: policy.stats().waiting }),
      };
    },
  },
];
for (const subject of subjects) for (const { title, run } of abortCases(subject)) it(title, run);

function unavailable(facts: object = {}): never {
  throw Object.assign(new Error("unavailable"), { status: 503, ...facts });
}

/** Runs `fn` to its end in virtual time: what came of it, and when each attempt began. */
async function follow(
  fn: (context: RetryContext) => unknown,
  options: RetryOptions = {},
  clock: VirtualClock = new VirtualClock(),
): Promise<{ readonly result: unknown; readonly startedAt: number[]; readonly endedAt: number }> {
  const startedAt: number[] = [];
  let endedAt = Number.NaN;
  const attempt = (context: RetryContext): unknown => {
    startedAt.push(clock.now());
    return fn(context);
  };
  const settled = retry({ random: () => 1, clock, ...options })
    .run(attempt)
    .catch((error: unknown) => error)
    .finally(() => (endedAt = clock.now()));
  await clock.advance(1_000_000);
  const result = await settled;
  expect(clock.timers).toBe(0);
  return { result, startedAt, endedAt };
}

it("J42: makes three more attempts by default, after up to 100, 200 and 400 ms", async () => {
  const longest = await follow(() => unavailable(), { random: () => 1 });
  expect(longest.startedAt).toEqual([0, 100, 300, 700]);
  const shortest = await follow(() => unavailable(), { random: () => 0 });
  expect(shortest.startedAt).toEqual([0, 0, 0, 0]);
  expect((await follow(() => unavailable(), { retries: 2 })).startedAt.length).toBe(3);
  expect((await follow(() => unavailable(), { retries: 0 })).startedAt.length).toBe(1);
});

it("J43: throws the last error as it was, with no wait after the last attempt", async () => {
  const { result, endedAt } = await follow(({ attempt }) => unavailable({ attempt }));
  expect(result).toMatchObject({ message: "unavailable", attempt: 4 });
  expect(endedAt).toBe(700);
});

it("stops at the first error that is not worth another attempt, whatever was thrown", async () => {
  for (const thrown of [Object.assign(new Error("bad request"), { status: 400 }), "a string", undefined, null]) {
    const { result, startedAt } = await follow(() => Promise.reject(thrown));
    expect([result, startedAt]).toEqual([thrown, [0]]);
  }
});

it("tells each attempt its number, and all of them the same idempotency key", async () => {
  const seen: [number, string][] = [];
  const { result } = await follow(({ attempt, idempotencyKey }) => {
    seen.push([attempt, idempotencyKey]);
    return attempt < 3 ? unavailable() : "done";
  });
  const [[, key] = [0, ""]] = seen;
  expect([result, seen]).toEqual(["done", [[1, key], [2, key], [3, key]]]); // prettier-ignore
  expect(key).toMatch(/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
  const policy = retry({ clock: new VirtualClock() });
  expect(await policy.run(({ idempotencyKey }) => idempotencyKey, { idempotencyKey: "order-7" })).toBe("order-7");
  const others = await Promise.all([1, 2].map(() => policy.run(({ idempotencyKey }) => idempotencyKey)));
  expect(new Set([key, ...others]).size).toBe(3);
});

it("J43: waits for the longer of the backoff and what the error asks for", async () => {
  const { startedAt } = await follow(({ attempt }) =>
    unavailable({ retryAfterMs: [5_000, 50, Number.NaN, -1][attempt - 1] }),
  );
  expect(startedAt).toEqual([0, 5_000, 5_200, 5_600]);
  const never = await follow(() => unavailable({ retryAfterMs: Infinity }));
  expect(never.startedAt).toEqual([0]);
});

it("rejects with an error whose own retryAfterMs throws, as it is", async () => {
  const odd = Object.defineProperty(new Error("odd"), "retryAfterMs", {
    get() {
      throw new Error("no hint");
    },
  });
  const policy = retry({ classify: () => "retry", baseMs: 0, retries: 1 });
  await expect(policy.run(() => Promise.reject(odd))).rejects.toBe(odd);
  expect(policy.stats().attempts).toBe(2);
});

function busyFor(retryAfterMs: number): Error {
  return Object.assign(new Error("busy"), { status: 429, retryAfterMs });
}

it("waits as long as the soonest of several errors asks for", async () => {
  const { startedAt } = await follow(({ attempt }) => {
    if (attempt === 1) throw new AggregateError([busyFor(9_000), new AggregateError([busyFor(3_000), busyFor(5_000)])]);
  });
  expect(startedAt).toEqual([0, 3_000]);
});

it("J38: spreads 500 clients that failed together over the whole range", async () => {
  const clock = new VirtualClock();
  const policy = retry({ retries: 1, baseMs: 1_000, clock, random: seededRandom(1) });
  const perTenth = Array.from({ length: 10 }, () => 0);
  const clients = Array.from({ length: 500 }, () =>
    policy.run(({ attempt }) => {
      if (attempt === 1) unavailable();
      const tenth = Math.floor(clock.now() / 100);
      perTenth[tenth] = (perTenth[tenth] ?? 0) + 1;
    }),
  );
  await clock.advance(1_000);
  await Promise.all(clients);
  expect(Math.min(...perTenth)).toBeGreaterThan(25);
  expect(Math.max(...perTenth)).toBeLessThan(75);
});

it("C076: leaves no listener on a long-lived signal, whether runs succeed or fail", async () => {
  const clock = new VirtualClock();
  const { signal } = new AbortController();
  const policy = retry({ retries: 2, baseMs: 1, clock });
  const runs = Array.from({ length: 20 }, (_, id) =>
    policy.run(({ attempt }) => (attempt === 3 && id % 2 === 0 ? id : unavailable()), { signal }),
  );
  expect(getEventListeners(signal, "abort").length).toBe(1);
  await Promise.all([Promise.allSettled(runs), clock.advance(10)]);
  expect([getEventListeners(signal, "abort").length, clock.timers]).toEqual([0, 0]);
});

it("C077: takes the caller's own time limit for no transient fault", async () => {
  const clock = new VirtualClock();
  using call = Deadline.after(50, { clock });
  const { signal } = call;
  const policy = retry({ clock });
  let endedAt = Number.NaN;
  const run = policy
    .run((context) => sleep(1_000, { clock, signal: context.signal }), { signal })
    .finally(() => (endedAt = clock.now()));
  const ended = expect(run).rejects.toSatisfy((error) => error === signal.reason);
  await clock.advance(2_000);
  await ended;
  expect([endedAt, policy.stats().attempts]).toEqual([50, 1]);
});

it("C078: gives each attempt a limit of its own, by a timeout inside", async () => {
  const clock = new VirtualClock();
  const perAttempt = timeout(100, { clock });
  const { result, startedAt, endedAt } = await follow(
    ({ attempt, signal }) =>
      perAttempt.run((inner) => sleep([150, 50][attempt - 1] ?? 0, { clock, signal: inner.signal }), { signal }),
    { retries: 2, baseMs: 0 },
    clock,
  );
  expect([result, startedAt, endedAt]).toEqual([undefined, [0, 100], 150]);
});

it("C079: really waits a delay beyond the range of a timer", async () => {
  const clock = new VirtualClock();
  const policy = retry({ retries: 1, baseMs: 2 ** 40, maxMs: Infinity, random: () => 1, clock });
  const run = policy.run(({ attempt }) => (attempt === 1 ? unavailable() : clock.now()));
  await clock.advance(2 ** 41);
  expect(await run).toBe(2 ** 40);
});

it("J44: stops between attempts at the caller's abort, and starts no other", async () => {
  const clock = new VirtualClock();
  const call = new AbortController();
  const policy = retry({ random: () => 1, clock });
  const run = policy.run(() => unavailable(), { signal: call.signal });
  await clock.advance(50);
  expect(policy.stats()).toMatchObject({ attempts: 1, waiting: 1 });
  call.abort(new Error("changed my mind"));
  expect([clock.timers, policy.stats().waiting]).toEqual([0, 0]);
  await expect(run).rejects.toBe(call.signal.reason);
  await clock.advance(1_000);
  expect(policy.stats()).toMatchObject({ attempts: 1, waiting: 0 });
});

it("J44: starts no attempt if the abort comes in the turn in which the wait ends", async () => {
  const clock = new VirtualClock();
  const call = new AbortController();
  const policy = retry({ random: () => 1, clock });
  const run = policy.run(() => unavailable(), { signal: call.signal });
  clock.setTimer(100, { onTimer: () => call.abort("late") }); // after the timer of the wait
  const ended = expect(run).rejects.toBe("late");
  await clock.advance(100);
  await ended;
  expect(policy.stats()).toMatchObject({ waiting: 0, attempts: 1, retries: 0 });
});

it("J44: reports the abort and not the error of the attempt that it ended", async () => {
  const clock = new VirtualClock();
  const call = new AbortController();
  const policy = retry({ clock });
  const run = policy.run(
    ({ signal }) =>
      new Promise((_, reject) => {
        signal?.addEventListener("abort", () => reject(new Error("socket hang up")));
      }),
    { signal: call.signal },
  );
  call.abort("caller");
  await expect(run).rejects.toBe("caller");
  expect(policy.stats()).toMatchObject({ attempts: 1, abandoned: 0, lateErrors: 1 });
});

it.each([
  ["a limit in milliseconds", 250],
  ["a Deadline that others share", undefined],
])(
  "J47: ends with a TimeoutError at the deadline, as %s: five attempts of 50 ms that hang in 250",
  async (_, limitMs) => {
    const clock = new VirtualClock();
    using shared = Deadline.after(250, { clock });
    const perAttempt = timeout(50, { clock });
    const policy = retry({ retries: Infinity, baseMs: 0, deadline: limitMs ?? shared, clock });
    let endedAt = Number.NaN;
    const run = policy
      .run(({ signal }) => perAttempt.run(() => new Promise(() => {}), { signal }))
      .catch((error: unknown) => error)
      .finally(() => (endedAt = clock.now()));
    await clock.advance(300);
    expect(await run).toBeInstanceOf(TimeoutError);
    expect(await run).toMatchObject({ timeoutMs: 250 });
    expect([endedAt, policy.stats().attempts, clock.timers]).toEqual([250, 5, 0]);
  },
);

it("ends at the deadline though an attempt ignores its signal, and counts what it abandoned", async () => {
  const clock = new VirtualClock();
  const policy = retry({ deadline: 250, clock });
  const run = policy
    .run(async () => {
      await sleep(400, { clock });
      throw new Error("late");
    })
    .catch((error: unknown) => error);
  await clock.advance(250);
  expect(await run).toBeInstanceOf(TimeoutError);
  expect(policy.stats()).toMatchObject({ abandoned: 1, lateErrors: 0 });
  await clock.advance(150);
  expect(policy.stats()).toMatchObject({ attempts: 1, abandoned: 0, lateErrors: 1 });
});

it("takes an attempt that ends with its signal for no late error", async () => {
  const clock = new VirtualClock();
  const policy = retry({ deadline: 250, clock });
  const ended = expect(policy.run(({ signal }) => sleep(1_000, { signal, clock }))).rejects.toThrow(TimeoutError);
  await clock.advance(250);
  await ended;
  expect(policy.stats()).toMatchObject({ attempts: 1, abandoned: 0, lateErrors: 0 });
});

it("leaves neither timer nor listener of its deadline once it has an answer", async () => {
  const clock = new VirtualClock();
  const { signal } = new AbortController();
  using shared = Deadline.after(10_000, { clock });
  for (const deadline of [10_000, shared]) expect(await retry({ deadline, clock }).run(() => 1, { signal })).toBe(1);
  shared.close();
  const listeners = [signal, shared.signal].map((each) => getEventListeners(each, "abort").length);
  expect([clock.timers, ...listeners]).toEqual([0, 0, 0]);
});

it("J46: does not begin a wait that the deadline would end, and says what was missing", async () => {
  const { result, startedAt, endedAt } = await follow(() => unavailable(), { deadline: 250 });
  expect(result).toBeInstanceOf(DeadlineError);
  expect(result).toMatchObject({ code: "DEADLINE", leftMs: 150, neededMs: 200, cause: { status: 503 } });
  expect([startedAt, endedAt]).toEqual([[0, 100], 100]);
});

it("makes no attempt with a Deadline that has ended, and rejects with what it ended with", async () => {
  const clock = new VirtualClock();
  using deadline = Deadline.after(10, { clock });
  await clock.advance(10);
  const fn = vi.fn(() => 1);
  await expect(retry({ deadline, clock }).run(fn)).rejects.toBe(deadline.signal.reason);
  expect([fn.mock.calls.length, clock.timers]).toEqual([0, 0]);
});

it("lets the caller's abort win over a deadline of the same turn", async () => {
  const clock = new VirtualClock();
  const controller = new AbortController();
  const run = retry({ deadline: 100, clock }).run(() => new Promise(() => {}), { signal: controller.signal });
  clock.setTimer(100, { onTimer: () => controller.abort("left") }); // after the timer of the deadline
  const ended = expect(run).rejects.toBe("left");
  await clock.advance(100);
  await ended;
});

it("makes no attempt with a deadline that has passed", async () => {
  const { result, startedAt } = await follow(() => 1, { deadline: 0 });
  expect([result, startedAt]).toEqual([expect.any(TimeoutError), []]);
});

it("C099: does not retry what an open breaker refused, unless asked", async () => {
  expect((await follow(refuse)).startedAt).toEqual([0]);
  const asked = await follow(refuse, { retries: 1, classify: () => "retry" });
  expect(asked.startedAt).toEqual([0, 250]);
});

function refuse(): never {
  throw new CircuitOpenError(250);
}

it("rejects with what classify threw", async () => {
  const broken = new Error("classify");
  const { result } = await follow(() => unavailable(), {
    classify() {
      throw broken;
    },
  });
  expect(result).toBe(broken);
});

it.each(["retry", "stop"] as const)(
  "ends by the abort that comes from within classify, which says %s",
  async (verdict) => {
    const clock = new VirtualClock();
    const call = new AbortController();
    const policy = retry({
      clock,
      classify() {
        call.abort("enough");
        return verdict;
      },
    });
    await expect(policy.run(() => unavailable(), { signal: call.signal })).rejects.toBe("enough");
    expect(clock.timers).toBe(0);
    expect(policy.stats()).toMatchObject({ waiting: 0, attempts: 1, abandoned: 0 });
  },
);

/** A fails at once and has 500 ms to wait; B comes after 10 ms and takes 20. One slot for both. */
async function share(order: "retry outside" | "permit outside"): Promise<{ bStartedAt: number; ended: string[] }> {
  const clock = new VirtualClock();
  const slot = new Semaphore(1, { clock });
  const policy = retry({ baseMs: 500, random: () => 1, clock });
  let bStartedAt = Number.NaN;
  const ended: string[] = [];
  const b = (): Promise<void> => {
    bStartedAt = clock.now();
    return sleep(20, { clock });
  };
  const first =
    order === "retry outside"
      ? policy.run((context) => slot.run(() => failOnce(context)))
      : slot.run(() => policy.run(failOnce));
  void first.then(() => ended.push("A"));
  await clock.advance(10);
  void slot.run(b).then(() => ended.push("B"));
  await clock.advance(1_000);
  return { bStartedAt, ended };
}

function failOnce({ attempt }: RetryContext): unknown {
  return attempt > 1 || unavailable();
}

it("C081, F10.5: holds no permit through its wait if the permit is inside", async () => {
  expect(await share("retry outside")).toEqual({ bStartedAt: 10, ended: ["B", "A"] });
});

it("F10.5: without that, who only waits for another try keeps the slot from who could work", async () => {
  expect(await share("permit outside")).toEqual({ bStartedAt: 500, ended: ["A", "B"] });
});

it("calls fn synchronously, and again only from a timer, so that instant failures don't block the event loop", async () => {
  const clock = new VirtualClock();
  let attempts = 0;
  const fail = (): never => unavailable({ attempts: (attempts += 1) });
  const run = retry({ baseMs: 0, clock }).run(fail);
  expect(attempts).toBe(1);
  const failed = expect(run).rejects.toMatchObject({ attempts: 4 });
  await turn();
  expect([attempts, clock.timers]).toEqual([1, 1]);
  await clock.advance(0);
  await failed;
});

it("leaves nothing, and does not call fn, when the clock or the signal throws", async () => {
  const clock = new VirtualClock();
  const { signal } = new AbortController();
  signal.addEventListener = () => {
    throw new Error("broken");
  };
  let called = false;
  for (const deadline of [Infinity, 100])
    await expect(retry({ deadline, clock }).run(() => (called = true), { signal })).rejects.toThrow("broken");
  expect([called, clock.timers]).toEqual([false, 0]);
  const policy = retry({ clock });
  clock.setTimer = () => {
    throw new Error("broken too");
  };
  await expect(policy.run(() => unavailable())).rejects.toThrow("broken too");
  expect(policy.stats()).toMatchObject({ waiting: 0 });
});

it("makes each attempt in the async context of its run, whoever owns the timers", async () => {
  const clock = new VirtualClock();
  const context = new AsyncLocalStorage<number>();
  const seen: unknown[] = [];
  const attempt = (): unknown => (seen.push(context.getStore()), unavailable());
  const ended = Promise.allSettled(
    [1, 2].map((id) => context.run(id, () => retry({ retries: 1, random: () => 1, clock }).run(attempt))),
  );
  await clock.advance(1_000);
  await ended;
  expect(seen).toEqual([1, 2, 1, 2]);
});

it.each([5, null, {}])(
  "refuses a key that is no string, alone and composed: it would be no key, or that of all calls",
  async (key) => {
    const options = { idempotencyKey: key as string };
    for (const policy of [retry(), compose(timeout(100), retry())])
      await expect(policy.run(() => "called", options)).rejects.toThrow("idempotencyKey must be a string");
  },
);

it("refuses bad options", () => {
  for (const bad of [{ retries: -1 }, { retries: 1.5 }, { baseMs: -1 }, { baseMs: Infinity }, { maxMs: Number.NaN }])
    expect(() => retry(bad)).toThrow(RangeError);
  for (const bad of [{ factor: 0.5 }, { factor: Infinity }, { deadline: -1 }])
    expect(() => retry(bad)).toThrow(RangeError);
  for (const bad of [
    { retries: "3" },
    { factor: "2" },
    { deadline: "9" },
    { deadline: null },
    { deadline: new Date() },
  ])
    expect(() => retry(bad as unknown as RetryOptions)).toThrow(TypeError);
  for (const name of ["classify", "backoff", "retryResult", "onRetry", "random"])
    expect(() => retry({ [name]: "often" })).toThrow(`${name} must be a function, got string`);
});

it("refuses an empty key, which would be the same in all calls, alone and composed", async () => {
  const options = { idempotencyKey: "" };
  for (const policy of [retry(), compose(timeout(100), retry())])
    await expect(policy.run(() => "called", options)).rejects.toThrow('idempotencyKey must not be empty, got ""');
});

it("does what the rules say under any plan of outcomes, aborts and deadlines", () => {
  const outcome = fc.record({
    kind: fc.constantFrom("ok", "transient", "transient", "transient", "permanent", "hang"),
    ms: fc.integer({ min: 0, max: 40 }),
  });
  const plans = fc.asyncProperty(
    fc.record({
      outcomes: fc.array(outcome, { minLength: 5, maxLength: 5 }),
      retries: fc.integer({ min: 0, max: 4 }),
      chance: fc.constantFrom(0.25, 0.5, 1),
      abortMs: fc.integer({ min: 1, max: 200 }),
      deadline: fc.constantFrom(30, 100, 150, Infinity),
    }),
    play,
  );
  return fc.assert(plans, { numRuns: 1_000 });
});

interface Plan {
  readonly outcomes: readonly { readonly kind: string; readonly ms: number }[];
  readonly retries: number;
  readonly chance: number;
  readonly abortMs: number;
  readonly deadline: number;
}

async function play(plan: Plan): Promise<void> {
  const clock = new VirtualClock();
  const call = new AbortController();
  clock.setTimer(plan.abortMs, { onTimer: () => call.abort("abort") });
  const policy = retry({ ...plan, baseMs: 16, maxMs: 64, random: () => plan.chance, clock });
  let endedAt = Number.NaN;
  const run = policy
    .run(
      async ({ attempt }) => {
        const { kind, ms } = plan.outcomes[attempt - 1] ?? { kind: "hang", ms: 0 };
        if (ms > 0) await sleep(ms, { clock });
        if (kind === "hang") await new Promise(() => {});
        if (kind !== "ok") unavailable({ status: kind === "transient" ? 503 : 400 });
        return "ok";
      },
      { signal: call.signal },
    )
    .catch((error: unknown) => (typeof error === "string" ? error : ((error as { code?: string }).code ?? "error")))
    .finally(() => (endedAt = clock.now()));
  await clock.advance(1_000);
  expect([await run, endedAt, policy.stats().attempts]).toEqual(expected(plan));
  const { waiting, retries, attempts } = policy.stats();
  expect([waiting, retries]).toEqual([0, attempts - 1]);
  expect([clock.timers, getEventListeners(call.signal, "abort").length]).toEqual([0, 0]);
}

/** What the run gives, when, and after how many attempts. At one instant, an abort comes first and then the deadline. */
function expected({ outcomes, retries, chance, abortMs, deadline }: Plan): [string, number, number] {
  let now = 0;
  for (const [index, { kind, ms }] of outcomes.entries()) {
    const endsAt = kind === "hang" ? Infinity : now + ms;
    if (Math.min(abortMs, deadline) <= endsAt)
      return abortMs <= deadline ? ["abort", abortMs, index + 1] : ["TIMEOUT", deadline, index + 1];
    if (kind === "ok") return ["ok", endsAt, index + 1];
    if (kind === "permanent" || index === retries) return ["error", endsAt, index + 1];
    const waitMs = chance * Math.min(64, 16 * 2 ** index);
    if (waitMs >= deadline - endsAt) return ["DEADLINE", endsAt, index + 1];
    now = endsAt + waitMs;
    if (abortMs <= now) return ["abort", abortMs, index + 1];
  }
  return ["never", Number.NaN, 0];
}
