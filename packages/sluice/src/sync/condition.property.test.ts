import { getEventListeners } from "node:events";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Condition } from "./condition.ts";
import { Mutex } from "./mutex.ts";
import type { Permit } from "./permit.ts";

it("loses no wake-up and never lets two hold the mutex, under any plan of waits, signals, aborts and timeouts", () => {
  const waits = ["take", "take", "hurried take", "abortable take", "plain take"] as const;
  const rest = ["put", "put", "put", "steal", "broadcast", "abort", "10 ms", "hold", "let go", "settle"] as const;
  const plans = fc.asyncProperty(fc.array(fc.constantFrom(...waits, ...rest), { maxLength: 40 }), play);
  return fc.assert(plans, { numRuns: 1_000 });
});

/** Items in a store that a mutex guards, each with one signal: while one is there, nobody may wait for it for good. */
async function play(plan: readonly string[]): Promise<void> {
  const clock = new VirtualClock();
  const mutex = new Mutex({ clock });
  const some = new Condition(mutex, { clock });
  const faults: string[] = [];
  const holds: (() => void)[] = [];
  let [items, put, taken, asked, ended, inside] = [0, 0, 0, 0, 0, 0];
  let call = new AbortController();
  const isThere = (): boolean => items > 0;
  /** For whoever holds the mutex, and lets others run meanwhile. */
  const section = async (fn: () => unknown): Promise<void> => {
    inside += 1;
    if (inside > 1 || !mutex.locked) faults.push(`${inside} inside`);
    await fn();
    inside -= 1;
  };
  const takeOne = (): void => {
    if (items === 0) faults.push("woken for nothing");
    items -= 1;
    taken += 1;
  };
  const take = (isPlain: boolean, options: object): Promise<void> => {
    asked += 1;
    const wait = async (guard: Permit): Promise<void> => {
      if (!isPlain) return some.waitFor(guard, isThere, options);
      while (!isThere()) await some.wait(guard, options);
    };
    const all = mutex.run(async ({ guard }) => {
      const isGranted = await wait(guard).then(
        () => true,
        () => false,
      );
      if (!mutex.isHeldBy(guard)) faults.push("came back without the mutex");
      await section(() => isGranted && takeOne());
    });
    return all.then(() => void (ended += 1));
  };
  const add = (): void => {
    put += 1;
    items += 1;
    some.signal();
  };
  for (const step of plan) {
    const { signal } = call;
    if (step === "take") void take(false, {});
    else if (step === "plain take") void take(true, {});
    else if (step === "hurried take") void take(false, { timeoutMs: 10 });
    else if (step === "abortable take") void take(false, { signal });
    else if (step === "put") void mutex.run(() => section(add));
    else if (step === "steal") void mutex.run(() => section(() => isThere() && takeOne()), { priority: 9 });
    else if (step === "broadcast") some.broadcast();
    else if (step === "abort") call = (call.abort(), new AbortController());
    else if (step === "hold") void mutex.run(() => section(() => new Promise<void>((done) => void holds.push(done))));
    else if (step === "let go") holds.shift()?.();
    else await clock.advance(step === "settle" ? 0 : 10);
    if (getEventListeners(signal, "abort").length > 1) faults.push("more than one listener");
  }
  for (const _ of plan) {
    holds.shift()?.();
    await clock.advance(10);
  }
  await clock.advance(10);
  expect(faults).toEqual([]);
  expect([put - taken, mutex.locked, mutex.waiting, clock.timers]).toEqual([items, false, 0, 0]);
  expect([asked - ended, Math.min(items, some.waiting)]).toEqual([some.waiting, 0]);
}
