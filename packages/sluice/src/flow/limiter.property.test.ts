import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Limiter } from "./limiter.ts";

it("keeps I1 to I5 under any plan of calls, ends, aborts, timeouts and closing", () => {
  const step = fc.constantFrom(
    "run",
    "run",
    "run",
    "hurry",
    "at once",
    "sync",
    "throw",
    "reject",
    "end",
    "end",
    "abort",
    "10 ms",
    "settle",
  );
  const rare = { weight: 1, arbitrary: fc.constantFrom("close", "stop") };
  const plans = fc.asyncProperty(
    fc.integer({ min: 1, max: 3 }),
    fc.constantFrom(0, 2, Infinity),
    fc.constantFrom("reject", "wait"),
    fc.constantFrom(500, Infinity),
    fc.array(fc.oneof({ weight: 40, arbitrary: step }, rare), { maxLength: 40 }),
    play,
  );
  return fc.assert(plans, { numRuns: 1_000 });
});

async function play(
  concurrency: number,
  capacity: number,
  whenFull: "reject" | "wait",
  stallMs: number,
  plan: readonly string[],
): Promise<void> {
  const clock = new VirtualClock();
  const limit = new Limiter(concurrency, { capacity, whenFull, stallMs, clock });
  const work: (() => void)[] = [];
  const started: number[] = [];
  const outcomes = new Map<number, string>();
  let [calls, inside, most] = [0, 0, 0];
  let call = new AbortController();
  for (const [id, step] of [...plan, "settle"].entries()) {
    const { signal } = call;
    const enter = (): void => {
      started.push(id);
      most = Math.max(most, (inside += 1));
    };
    const hold = async (): Promise<void> => {
      enter();
      await new Promise<void>((resolve) => void work.push(resolve));
      inside -= 1;
    };
    const tasks: Readonly<Record<string, () => unknown>> = {
      run: hold,
      hurry: hold,
      "at once": hold,
      sync() {
        enter();
        inside -= 1;
      },
      throw() {
        enter();
        inside -= 1;
        throw new Error("task");
      },
      async reject() {
        enter();
        inside -= 1;
        throw new Error("task");
      },
    };
    const task = tasks[step];
    if (task !== undefined) {
      calls += 1;
      const waiting = limit.waiting;
      const options = { signal, timeoutMs: { hurry: 10, "at once": 0 }[step] };
      limit.run(task, options).then(
        () => outcomes.set(id, "done"),
        (error: { code?: string }) => outcomes.set(id, error.code ?? "error"),
      );
      if (whenFull === "reject" && limit.waiting > waiting) expect(waiting).toBeLessThan(capacity); // I4
    } else if (step === "end") work.shift()?.();
    else if (step === "10 ms") await clock.advance(10);
    else if (step === "abort") call = (call.abort(), new AbortController());
    else if (step === "close") limit.close();
    else if (step === "stop") limit.abort({ code: "CLOSED" });
    else await turn();
    expect(limit.waiting > 0 && limit.running < concurrency).toBe(false); // I2
    const { running, completed, rejected, timedOut, aborted } = limit.stats();
    expect(running + limit.waiting + completed + rejected + timedOut + aborted).toBe(calls); // I5
    if (limit.closed) expect(limit.waiting).toBeLessThanOrEqual(capacity); // I4
    expect(getEventListeners(signal, "abort").length).toBeLessThanOrEqual(1);
    if (step === "settle") expect(limit.running).toBe(inside); // I1
  }
  const idle = limit.drain();
  while (limit.running > 0) {
    work.shift()?.();
    await turn();
  }
  await idle;
  await clock.advance(0); // a look at the event loop may be under way
  expect(most).toBeLessThanOrEqual(concurrency); // I1
  expect(started).toEqual(started.toSorted((a, b) => a - b)); // I3
  expect([limit.waiting, inside, outcomes.size, clock.timers]).toEqual([0, 0, calls, 0]);
  expect(getEventListeners(call.signal, "abort")).toHaveLength(0);
  const count = (...codes: string[]): number => [...outcomes.values()].filter((code) => codes.includes(code)).length;
  const { rejected, timedOut } = limit.stats();
  expect(timedOut).toBe(count("TIMEOUT"));
  if (!plan.includes("stop")) expect(rejected).toBe(count("QUEUE_FULL", "CLOSED")); // else some were granted, not begun
}
