import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { DeadlineError, TimeoutError } from "../errors.ts";
import { Queue } from "../flow/queue.ts";
import { retry } from "../resilience/retry.ts";
import { timeout } from "../resilience/timeout.ts";
import { Semaphore } from "../sync/semaphore.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { currentDeadline, withDeadline } from "./ambient-deadline.ts";
import { Deadline } from "./deadline.ts";

it("is known to all that is called and awaited within, and to nobody else", async () => {
  const clock = new VirtualClock();
  const seen: unknown[] = [];
  const result = withDeadline(
    1_000,
    async ({ deadline }) => {
      seen.push(currentDeadline() === deadline, await leftLater());
    },
    { clock },
  );
  expect(currentDeadline()).toBeUndefined();
  await result;
  expect([seen, await leftLater()]).toEqual([[true, 1_000], undefined]);
});

it("calls fn at once, settles as it does, and has closed its deadline then", async () => {
  const clock = new VirtualClock();
  const { signal } = new AbortController();
  let handed: AbortSignal | undefined;
  const result = withDeadline(50, (context) => (handed = context.signal) && "value", { signal, clock });
  expect([handed?.aborted, clock.timers]).toEqual([false, 1]);
  expect(await result).toBe("value");
  const failure = new Error("no");
  const failing = withDeadline(
    50,
    () => {
      throw failure;
    },
    { clock },
  );
  await expect(failing).rejects.toBe(failure);
  await clock.advance(100);
  expect([handed?.aborted, clock.timers, getEventListeners(signal, "abort").length]).toEqual([false, 0, 0]);
});

it("J48: an inner one ends no later than the outer, and keeps a reserve for the way back", async () => {
  const clock = new VirtualClock();
  await withDeadline(
    10_000,
    async () => {
      await clock.advance(7_000);
      const inner = (ms: number, reserveMs?: number): Promise<number> =>
        withDeadline(ms, ({ deadline }) => deadline.leftMs, { reserveMs, clock });
      expect(await inner(10_000)).toBe(3_000);
      expect(await inner(500)).toBe(500);
      expect(await inner(10_000, 200)).toBe(2_800);
      expect(await inner(10_000, 5_000)).toBe(0);
      expect(currentDeadline()?.leftMs).toBe(3_000);
    },
    { clock },
  );
});

it("lets work that is not the caller's any more have another", async () => {
  const clock = new VirtualClock();
  using own = Deadline.after(60_000, { clock });
  const left = await withDeadline(
    100,
    () => withDeadline(Infinity, ({ deadline }) => deadline.leftMs, { within: own, clock }),
    { clock },
  );
  expect(left).toBe(60_000);
});

it("J47: 250 ms leave time for five attempts of 50 ms that hang", async () => {
  const clock = new VirtualClock();
  const attempt = timeout(50, { within: currentDeadline, clock });
  const again = retry({ retries: Infinity, random: () => 0, clock });
  let attempts = 0;
  const hang = (): Promise<void> => {
    attempts += 1;
    return new Promise(() => {});
  };
  const result = withDeadline(250, () => again.run(() => attempt.run(hang), { deadline: currentDeadline() }), {
    clock,
  }).catch((error: unknown) => error);
  await clock.advance(250);
  expect([attempts, clock.now()]).toEqual([5, 250]);
  expect(await result).toBeInstanceOf(TimeoutError);
  await clock.advance(1_000);
  expect([attempts, clock.timers]).toEqual([5, 0]);
});

it("L07: ends waits for a queue and a permit, which are given its signal, and what they wait in is left as it was", async () => {
  const clock = new VirtualClock();
  const queue = new Queue<number>(1, { clock });
  const sem = new Semaphore(1, { clock });
  using _ = await sem.acquire();
  const serve = async (): Promise<unknown[]> =>
    Promise.all(
      [queue.take({ signal: currentDeadline()?.signal }), sem.acquire({ signal: currentDeadline()?.signal })].map(
        (wait) => Promise.resolve<unknown>(wait).catch((error: unknown) => error),
      ),
    );
  const result = withDeadline(80, serve, { clock });
  await clock.advance(80);
  expect(await result).toEqual([expect.any(TimeoutError), expect.any(TimeoutError)]);
  expect([queue.stats().waitingConsumers, sem.waiting, clock.timers]).toEqual([0, 0, 0]);
});

it("J46: what is over, or has less left than is needed, is not tried", async () => {
  const clock = new VirtualClock();
  const policy = timeout(1_000, { within: currentDeadline, neededMs: 20, clock });
  let calls = 0;
  const call = (): Promise<unknown> => policy.run(() => (calls += 1)).catch((error: unknown) => error);
  const seen = await withDeadline(
    100,
    async () => {
      const outcomes = [await call()];
      await clock.advance(81);
      outcomes.push(await call());
      await clock.advance(19);
      outcomes.push(await call());
      return outcomes;
    },
    { clock },
  );
  expect(seen).toEqual([1, expect.any(DeadlineError), expect.any(TimeoutError)]);
  expect(seen[1]).toMatchObject({ code: "DEADLINE", leftMs: 19, neededMs: 20 });
  expect(calls).toBe(1);
});

it("rejects for what is no duration, and throws nothing", async () => {
  await expect(withDeadline(-1, () => 1)).rejects.toThrow(RangeError);
  await expect(withDeadline(Number.NaN, () => 1)).rejects.toThrow(RangeError);
});

async function leftLater(): Promise<number | undefined> {
  await turn();
  return currentDeadline()?.leftMs;
}
