import { getEventListeners } from "node:events";
import { expect, it, vi } from "vitest";
import { withDeadline, currentDeadline } from "../clock/ambient-deadline.ts";
import { Deadline } from "../clock/deadline.ts";
import { sleep } from "../clock/sleep.ts";
import { DeadlineError, TimeoutError } from "../errors.ts";
import { seededRandom } from "../testing/seeded-random.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { constantBackoff, decorrelatedJitter, fullJitter } from "./backoff.ts";
import { attemptErrors } from "./retry-errors.ts";
import type { RetryContext, RetryEvent, RetryOptions, RetryRunOptions } from "./retry-options.ts";
import { retry } from "./retry.ts";

function unavailable(facts: object = {}): never {
  throw Object.assign(new Error("unavailable"), { status: 503, ...facts });
}

/** Runs `fn` to its end in virtual time: what came of it, and when each attempt began. */
async function follow(
  fn: (context: RetryContext) => unknown,
  options: RetryOptions = {},
  run: RetryRunOptions = {},
): Promise<{ readonly result: unknown; readonly startedAt: readonly number[]; readonly clock: VirtualClock }> {
  const clock = new VirtualClock();
  const startedAt: number[] = [];
  const attempt = (context: RetryContext): unknown => {
    startedAt.push(clock.now());
    return fn(context);
  };
  const settled = retry({ random: () => 1, clock, ...options })
    .run(attempt, run)
    .catch((error: unknown) => error);
  await clock.advance(100_000);
  const result = await settled;
  expect(clock.timers).toBe(0);
  return { result, startedAt, clock };
}

it("D04: tries four times, waits longer each time, never after the last, and rejects with the last error", async () => {
  const keys = new Set<string>();
  const { result, startedAt } = await follow(({ attempt, idempotencyKey }) => {
    keys.add(idempotencyKey);
    unavailable({ attempt, retryAfterMs: attempt === 2 ? 2_000 : undefined });
  });
  expect(result).toMatchObject({ attempt: 4 });
  expect([startedAt, keys.size]).toEqual([[0, 100, 2_100, 2_500], 1]);
});

it("J39, K06: layers multiply: four attempts in each of three are 64 calls for one request", async () => {
  const clock = new VirtualClock();
  const [outer, middle, inner] = Array.from({ length: 3 }, () => retry({ baseMs: 0, clock }));
  let calls = 0;
  const ended = outer?.run(() => middle?.run(() => inner?.run(() => ((calls += 1), unavailable())))).catch(() => {});
  await clock.advance(1);
  await ended;
  expect(calls).toBe(64);
  const shares = [outer, middle, inner].map((each) => each?.stats() ?? { attempts: 0, retries: 0 });
  expect(shares.map(({ attempts, retries }) => attempts / (attempts - retries))).toEqual([4, 4, 4]);
});

it("K05: a constant wait keeps 500 clients in step, jitter doesn't", async () => {
  expect(await most(constantBackoff(1_000))).toBe(500);
  expect(await most(fullJitter(constantBackoff(1_000)))).toBeLessThan(200);
});

/** As many of 500 clients whose calls all fail come back within one tenth of a second. */
async function most(backoff: RetryOptions["backoff"]): Promise<number> {
  const clock = new VirtualClock();
  const policy = retry({ retries: 3, backoff, clock, random: seededRandom(7) });
  const perTenth = new Map<number, number>();
  const call = ({ attempt }: RetryContext): void => {
    const tenth = Math.floor(clock.now() / 100);
    if (attempt > 1) perTenth.set(tenth, (perTenth.get(tenth) ?? 0) + 1);
    unavailable();
  };
  const ended = Array.from({ length: 500 }, () => policy.run(call).catch(() => {}));
  await clock.advance(10_000);
  await Promise.all(ended);
  return Math.max(...perTenth.values());
}

it("waits as long as a backoff of one's own says, which hears of the attempt, its error and the wait before", async () => {
  const heard: unknown[] = [];
  const { startedAt } = await follow(({ attempt }) => unavailable({ attempt }), {
    backoff(attempt, { previousMs, reason }) {
      heard.push([attempt, previousMs, (reason as { attempt: number }).attempt]);
      return attempt * 10;
    },
  });
  expect([startedAt, heard]).toEqual([[0, 10, 30, 60], [[1, 0, 1], [2, 10, 2], [3, 20, 3]]]); // prettier-ignore
  const decorrelated = await follow(() => unavailable(), { backoff: decorrelatedJitter({ baseMs: 10 }) });
  expect(decorrelated.startedAt).toEqual([0, 10, 40, 130]);
});

it.each([Infinity, Number.NaN])(
  "ends with the error when its own backoff says %d, and never in a hot loop",
  async (ms) => {
    const { result, startedAt } = await follow(() => unavailable(), { retries: Infinity, backoff: () => ms });
    expect([result, startedAt]).toEqual([expect.objectContaining({ status: 503 }), [0]]);
    expect((await follow(() => unavailable(), { retries: 2, backoff: () => -5 })).startedAt).toEqual([0, 0, 0]);
  },
);

it("rejects with what its own backoff threw", async () => {
  const { result } = await follow(() => unavailable(), { backoff: () => unavailable({ status: 1 }) });
  expect(result).toMatchObject({ status: 1 });
});

it("tries again after a result that is not wanted, and resolves with the last one when there may be no other", async () => {
  const ready = await follow(({ attempt }) => (attempt < 3 ? "pending" : "ready"), { retryResult: isPending });
  expect([ready.result, ready.startedAt]).toEqual(["ready", [0, 100, 300]]);
  const asked = await follow(() => Promise.resolve("pending"), { retryResult: isPending, retries: 1 });
  expect([asked.result, asked.startedAt]).toEqual(["pending", [0, 100]]);
  await expect(retry({ retries: 0, retryResult: isPending }).run(() => "pending")).resolves.toBe("pending");
  const short = await follow(() => "pending", { retryResult: isPending, deadline: 250 });
  expect([short.result, short.startedAt]).toEqual(["pending", [0, 100]]);
  const spent = { onCall() {}, trySpend: () => false };
  expect((await follow(() => "pending", { retryResult: isPending, budget: spent })).startedAt).toEqual([0]);
});

function isPending(result: unknown): boolean {
  return result === "pending";
}

it("rejects with what retryResult threw, and asks no classify about it", async () => {
  const broken = Object.assign(new Error("broken"), { status: 503 });
  const { result, startedAt } = await follow(() => 1, {
    retryResult() {
      throw broken;
    },
  });
  expect([result, startedAt]).toEqual([broken, [0]]);
});

it("heeds a retryAfterMs of a result as it does that of an error", async () => {
  const busy = { retryAfterMs: 700 };
  const { startedAt } = await follow(() => busy, { retries: 1, retryResult: () => true });
  expect(startedAt).toEqual([0, 700]);
});

it("tells of each retry before its wait, and of nothing else", async () => {
  const events: RetryEvent[] = [];
  const onRetry = (event: RetryEvent): unknown => events.push(event);
  await follow(({ attempt }) => unavailable({ attempt }), { retries: 2, onRetry });
  expect(events).toEqual([
    { attempt: 1, reason: expect.objectContaining({ attempt: 1 }), waitMs: 100 },
    { attempt: 2, reason: expect.objectContaining({ attempt: 2 }), waitMs: 200 },
  ]);
  events.length = 0;
  await follow(() => unavailable({ status: 400 }), { onRetry });
  await follow(() => unavailable(), { onRetry, deadline: 50 });
  expect(events).toEqual([]);
});

it("takes no harm from an onRetry that throws: it is an unhandled rejection", async () => {
  const unhandled = vi.fn<(reason: unknown) => void>();
  process.on("unhandledRejection", unhandled);
  try {
    const { startedAt } = await follow(() => unavailable(), {
      retries: 1,
      onRetry() {
        throw new Error("hook");
      },
    });
    expect(startedAt).toEqual([0, 100]);
    await vi.waitFor(() => expect(unhandled).toHaveBeenCalledOnce());
  } finally {
    process.off("unhandledRejection", unhandled);
  }
});

it("starts no wait when onRetry has aborted the run", async () => {
  const clock = new VirtualClock();
  const call = new AbortController();
  const policy = retry({ clock, onRetry: () => call.abort("enough") });
  await expect(policy.run(() => unavailable(), { signal: call.signal })).rejects.toBe("enough");
  expect([clock.timers, policy.stats().waiting, policy.stats().retries]).toEqual([0, 0, 0]);
});

it("gives each attempt a signal of its own, which ends when another follows, and no longer when it was the last", async () => {
  const signals: AbortSignal[] = [];
  const { result } = await follow(
    ({ attempt, signal }) => {
      signals.push(signal);
      return attempt === 2 ? "done" : unavailable({ attempt });
    },
    {},
    { signal: new AbortController().signal },
  );
  expect([result, new Set(signals).size]).toEqual(["done", 2]);
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
  expect(signals[0]?.reason).toMatchObject({ status: 503, attempt: 1 });
  const last = await follow((context) => unavailable({ context }), { retries: 1 });
  expect((last.result as { context: RetryContext }).context.signal.aborted).toBe(false);
});

it("ends the attempt's signal with the caller's reason, also for who asks for it afterwards", async () => {
  const clock = new VirtualClock();
  const call = new AbortController();
  const contexts: RetryContext[] = [];
  const run = retry({ clock }).run((context) => (contexts.push(context), new Promise(() => {})), {
    signal: call.signal,
  });
  call.abort("gone");
  await expect(run).rejects.toBe("gone");
  expect(contexts[0]?.signal.reason).toBe("gone");
});

it("C085: what attempts leave on their signals is not left on the caller's", async () => {
  const { signal } = new AbortController();
  await follow((context) => (context.signal.addEventListener("abort", () => {}), unavailable()), {}, { signal });
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

it("knows the errors of all attempts of a run by the last", async () => {
  const { result } = await follow(({ attempt }) => unavailable({ attempt }));
  expect(attemptErrors(result).map((error) => (error as { attempt: number }).attempt)).toEqual([1, 2, 3, 4]);
  expect(attemptErrors(result).at(-1)).toBe(result);
  const late = await follow(({ attempt }) => unavailable({ attempt }), { deadline: 250 });
  expect(attemptErrors(late.result).map((error) => (error as { attempt: number }).attempt)).toEqual([1, 2]);
  expect((late.result as DeadlineError).cause).toBe(attemptErrors(late.result)[1]);
});

it("knows the latest 20 errors of a run that has more, and of what is no error of a retry only that", async () => {
  const { result } = await follow(({ attempt }) => unavailable({ attempt }), { retries: 29, baseMs: 0 });
  expect(attemptErrors(result).map((error) => (error as { attempt: number }).attempt)).toEqual(
    Array.from({ length: 20 }, (_, index) => index + 11),
  );
  for (const other of [new Error("other"), "text", undefined, null]) expect(attemptErrors(other)).toEqual([other]);
  const thrown = await follow(() => Promise.reject("text"), { classify: () => "retry" }); // oxlint-disable-line typescript/prefer-promise-reject-errors
  expect([thrown.result, attemptErrors(thrown.result)]).toEqual(["text", ["text"]]);
});

it("J46: takes a deadline for one run in place of the policy's", async () => {
  const policy = { deadline: 10_000 };
  const result = async (deadline: number | Deadline): Promise<unknown> =>
    (await follow(() => unavailable(), policy, { deadline })).result;
  expect(await result(250)).toMatchObject({ code: "DEADLINE", leftMs: 150 });
  expect(await result(0)).toBeInstanceOf(TimeoutError);
  expect(await result(Infinity)).toMatchObject({ status: 503 });
  expect(await result(-1)).toBeInstanceOf(RangeError);
});

it("J48: asks at each run for a deadline that is a function, such as that of whoever calls", async () => {
  const clock = new VirtualClock();
  const policy = retry({ deadline: currentDeadline, random: () => 1, clock });
  const within = withDeadline(250, () => policy.run(() => unavailable()), { clock }).catch((error: unknown) => error);
  const outside = policy.run(() => unavailable()).catch((error: unknown) => error);
  await clock.advance(1_000);
  expect(await within).toBeInstanceOf(DeadlineError);
  expect(await outside).toMatchObject({ status: 503 });
});

it("ends with the reason of whatever ends its Deadline early", async () => {
  const clock = new VirtualClock();
  const request = new AbortController();
  using deadline = Deadline.after(1_000, { signal: request.signal, clock });
  const run = retry({ deadline, clock }).run(({ signal }) => sleep(500, { signal, clock }));
  request.abort("client left");
  await expect(run).rejects.toBe("client left");
  expect(clock.timers).toBe(0);
});
