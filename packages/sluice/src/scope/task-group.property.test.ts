import { getEventListeners } from "node:events";
import { setImmediate as turn } from "node:timers/promises";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { explore } from "../testing/explore.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { collectAll, failFast, firstSettled, firstSuccess, type Joiner, quorum, settleAll } from "./joiner.ts";
import { TaskGroup } from "./task-group.ts";

const joiners = { failFast, collectAll, settleAll, firstSuccess, firstSettled, quorum: () => quorum(2) };

it("keeps I1 to I5, and outlives no child, under any plan of children, failures, aborts and limits", () => {
  const step = fc.constantFrom(
    "run",
    "run",
    "run",
    "hurry",
    "sync",
    "throw",
    "succeed",
    "succeed",
    "fail",
    "abort",
    "10 ms",
    "settle",
  );
  const rare = { weight: 1, arbitrary: fc.constantFrom("cancel", "parent", "limit") };
  const plans = fc.asyncProperty(
    fc.constantFrom(1, 2, Infinity),
    fc.constantFrom(...(Object.keys(joiners) as (keyof typeof joiners)[])),
    fc.boolean(),
    fc.array(fc.oneof({ weight: 30, arbitrary: step }, rare), { maxLength: 40 }),
    play,
  );
  return fc.assert(plans, { numRuns: 1_000 });
});

it("starts nothing after the cancellation, and ends after all that were started, in each order of a failure and an abort", async () => {
  const ends = new Set<string>();
  const report = await explore(async ({ task, invariant, step }) => {
    const group = new TaskGroup({ concurrency: 1 });
    let [inside, afterwards] = [0, 0];
    invariant("one runs at a time", () => inside <= 1);
    const child = (name: string, end: () => unknown): Promise<unknown> =>
      task(name, async (actor) => {
        const work = async (): Promise<void> => {
          if (group.signal.aborted) afterwards += 1;
          inside += 1;
          await actor.step("works", end).finally(() => (inside -= 1));
        };
        await group.run(work).catch(() => {});
      });
    const children = [child("good", () => {}), child("bad", () => Promise.reject(new Error("bad")))];
    const caller = task("caller", () => group.abort(new Error("abort")));
    await Promise.all(children);
    await step("joins");
    const end = group.join().then(
      () => "well",
      (error: Error) => error.message,
    );
    ends.add(`${await end}, ${inside} inside, ${afterwards} afterwards`);
    await caller;
  });
  expect(report.exhaustive).toBe(true);
  expect([...ends].toSorted()).toEqual(["abort, 0 inside, 0 afterwards", "bad, 0 inside, 0 afterwards"]);
});

async function play(
  concurrency: number,
  kind: keyof typeof joiners,
  isObedient: boolean,
  plan: readonly string[],
): Promise<void> {
  const clock = new VirtualClock();
  const parent = new AbortController();
  const joiner = joiners[kind]() as Joiner<unknown, unknown>;
  const group = new TaskGroup({ concurrency, joiner, timeoutMs: 1_000, signal: parent.signal, clock });
  const work: { readonly resolve: () => void; readonly reject: (error: Error) => void }[] = [];
  const started: number[] = [];
  let [inside, most, settled, calls] = [0, 0, 0, 0];
  let call = new AbortController();
  const watched = [parent.signal];
  for (const [id, step] of plan.entries()) {
    const { signal } = call;
    const hold = ({ signal: own }: { readonly signal: AbortSignal }): Promise<void> => {
      started.push(id);
      most = Math.max(most, (inside += 1));
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      work.push({ resolve, reject });
      if (isObedient) own.addEventListener("abort", () => reject(own.reason));
      return promise.finally(() => (inside -= 1));
    };
    const tasks: Readonly<Record<string, typeof hold>> = {
      run: hold,
      hurry: hold,
      sync: async () => void started.push(id),
      throw() {
        started.push(id);
        throw new Error("task");
      },
    };
    const task = tasks[step];
    if (task !== undefined) {
      calls += 1;
      const options = step === "hurry" ? { signal, timeoutMs: 10 } : step === "run" ? {} : { signal };
      group.run(task, options).then(
        () => (settled += 1),
        () => (settled += 1),
      );
    } else if (step === "succeed") work.shift()?.resolve();
    else if (step === "fail") work.shift()?.reject(new Error("later"));
    else if (step === "10 ms") await clock.advance(10);
    else if (step === "limit") await clock.advance(1_000);
    else if (step === "cancel") group.abort(new Error("cancelled"));
    else if (step === "parent") parent.abort(new Error("parent"));
    else if (step === "abort") {
      watched.push(signal);
      call = (call.abort(), new AbortController());
    } else await turn();
    const { running, waiting } = group.stats();
    expect(waiting > 0 && (running < concurrency || group.signal.aborted)).toBe(false); // I2
    if (step === "settle") expect(running).toBe(inside); // I1
    expect(clock.timers).toBeLessThanOrEqual(1 + waiting); // I4
  }
  let isJoined = false;
  const joined = group.join().then(
    () => (isJoined = true),
    () => (isJoined = true),
  );
  while (group.stats().running > 0) {
    expect(isJoined).toBe(false);
    work.shift()?.resolve();
    await turn();
  }
  await joined;
  const { running, waiting, fulfilled, failed, cancelled, state } = group.stats();
  expect([running, waiting, inside, state, settled]).toEqual([0, 0, 0, "ended", calls]); // I5
  expect(fulfilled + failed + cancelled).toBe(started.length);
  expect(most).toBeLessThanOrEqual(concurrency); // I1
  expect(started).toEqual(started.toSorted((a, b) => a - b)); // I3
  expect(clock.timers).toBe(0);
  for (const signal of [...watched, call.signal]) expect(getEventListeners(signal, "abort")).toHaveLength(0); // I4
}
