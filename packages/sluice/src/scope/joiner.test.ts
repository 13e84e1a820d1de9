import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { sleep } from "../clock/sleep.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { collectAll, failFast, firstSettled, firstSuccess, type Joiner, quorum, settleAll } from "./joiner.ts";
import { TaskGroup } from "./task-group.ts";
import { ended } from "./task-group.stage.ts";

/** Ends after so many milliseconds, with a value or an error. */
type Plan = readonly (readonly [ms: number, result: number | Error])[];

const [red, blue, late] = [new Error("red"), new Error("blue"), new Error("late")];

it("C36: failFast gives nothing itself, and rejects with the first failure at once", async () => {
  expect(
    await ran(failFast(), [
      [20, 1],
      [10, 2],
    ]),
  ).toEqual({ value: undefined, atMs: 20, ended: "all" });
  expect(
    await ran(failFast(), [
      [20, 1],
      [10, red],
      [15, blue],
    ]),
  ).toEqual({ error: red, atMs: 10, ended: "cancelled" });
});

it("collectAll lets all of them end, and gives the values in the order of start", async () => {
  expect(
    await ran(collectAll<number>(), [
      [30, 1],
      [10, 2],
      [20, 3],
    ]),
  ).toEqual({ value: [1, 2, 3], atMs: 30, ended: "all" });
});

it("collectAll throws an AggregateError of all failures in the order of start, of a single one as well", async () => {
  const both = await ran(collectAll<number>(), [
    [30, red],
    [10, blue],
    [20, 3],
  ]);
  expect(both).toMatchObject({
    error: { errors: [red, blue], message: "2 of the tasks failed" },
    atMs: 30,
    ended: "all",
  });
  const one = await ran(collectAll<number>(), [
    [10, red],
    [20, 2],
  ]);
  expect(one["error"]).toBeInstanceOf(AggregateError);
  expect(one).toMatchObject({ error: { errors: [red] }, atMs: 20 });
});

it("C37: settleAll gives every outcome in the order of start, failures as values", async () => {
  expect(
    await ran(settleAll<number>(), [
      [30, red],
      [10, 2],
    ]),
  ).toEqual({
    value: [
      { status: "rejected", reason: red },
      { status: "fulfilled", value: 2 },
    ],
    atMs: 30,
    ended: "all",
  });
});

it("settleAll tells who was cancelled from who failed", async () => {
  const group = new TaskGroup({ joiner: settleAll<number>() });
  const call = new AbortController();
  void group.run(({ signal }) => ended(signal), { signal: call.signal });
  void group.run(() => Promise.reject(red));
  call.abort(blue);
  expect(await group.join()).toEqual([
    { status: "cancelled", reason: blue },
    { status: "rejected", reason: red },
  ]);
});

it("C38: firstSuccess gives the first success, at once, and cancels the others", async () => {
  const plan: Plan = [
    [30, 1],
    [10, red],
    [20, 3],
  ];
  expect(await ran(firstSuccess<number>(), plan)).toEqual({ value: 3, atMs: 20, ended: "cancelled" });
});

it("firstSuccess throws an AggregateError in the order of start when all fail, or there is none", async () => {
  const found = await ran(firstSuccess<number>(), [
    [30, red],
    [10, blue],
  ]);
  expect(found).toMatchObject({ error: { errors: [red, blue] }, atMs: 30, ended: "all" });
  expect(found["error"]).toBeInstanceOf(AggregateError);
  expect(await ran(firstSuccess<number>(), [])).toMatchObject({ error: { errors: [] }, atMs: 0 });
});

it("C39: firstSettled gives or throws what the first to end did, and cancels the others", async () => {
  expect(
    await ran(firstSettled<number>(), [
      [30, 1],
      [10, 2],
    ]),
  ).toEqual({ value: 2, atMs: 10, ended: "cancelled" });
  expect(
    await ran(firstSettled<number>(), [
      [30, 1],
      [10, red],
    ]),
  ).toEqual({ error: red, atMs: 10, ended: "cancelled" });
  expect(await ran(firstSettled<number>(), [])).toMatchObject({ error: { errors: [] }, atMs: 0 });
});

it("quorum gives so many values in the order of start as soon as they are there, and cancels the others", async () => {
  const plan: Plan = [
    [40, 1],
    [20, 2],
    [15, red],
    [10, 4],
    [50, 5],
  ];
  expect(await ran(quorum<number>(2), plan)).toEqual({ value: [2, 4], atMs: 20, ended: "cancelled" });
  expect(await ran(quorum<number>(3), plan)).toEqual({ value: [1, 2, 4], atMs: 40, ended: "cancelled" });
});

it("quorum throws an AggregateError when all have ended and too few succeeded", async () => {
  const found = await ran(quorum<number>(2), [
    [40, red],
    [20, 2],
    [10, blue],
  ]);
  const message = "1 of the tasks succeeded, 2 were needed";
  expect(found).toMatchObject({ error: { errors: [red, blue], message }, atMs: 40, ended: "all" });
  expect(() => quorum(0)).toThrow("count must be an integer >= 1, got 0");
});

it("a child that its own signal ended counts neither as success nor as failure, nor as the first to settle", async () => {
  for (const joiner of [failFast(), collectAll<number>(), firstSuccess<number>(), firstSettled<number>(), quorum(1)]) {
    const group = new TaskGroup<number, unknown>({ joiner });
    const call = new AbortController();
    const gone = group.run(({ signal }) => ended(signal), {
      signal: call.signal,
    });
    call.abort(red);
    await expect(gone).rejects.toBe(red);
    void group.run(() => 2);
    const value = await group.join();
    expect([undefined, 2]).toContainEqual(Array.isArray(value) ? value[0] : value);
  }
});

it("what fails after the others were cancelled is late, whichever way the group ends", async () => {
  const joiners = [failFast(), firstSuccess<number>(), firstSettled<number>(), quorum<number>(1)];
  for (const joiner of joiners as Joiner<number, unknown>[]) {
    const heard: unknown[] = [];
    const group = new TaskGroup<number, unknown>({ joiner, onLateError: (error) => heard.push(error) });
    void group.run(() => turn().then(() => Promise.reject(late)));
    void group.run(() => (group.stats().running === 2 ? Promise.resolve(1) : 0));
    if (joiner === joiners[0]) void group.run(() => Promise.reject(red));
    await group.join().catch((error: unknown) => expect(error).toBe(red));
    expect(heard).toEqual([late]);
  }
});

/** What came of it, when, and whether those that did not count were cancelled. */
async function ran<T>(joiner: Joiner<number, T>, plan: Plan): Promise<Record<string, unknown>> {
  const clock = new VirtualClock();
  const group = new TaskGroup<number, T>({ joiner, clock });
  for (const [ms, result] of plan) {
    void group.run(async ({ signal }) => {
      await sleep(ms, { signal, clock });
      if (result instanceof Error) throw result;
      return result;
    });
  }
  const found: Record<string, unknown> = {};
  group.join().then(
    (value) => Object.assign(found, { value, atMs: clock.now() }),
    (error) => Object.assign(found, { error, atMs: clock.now() }),
  );
  for (let ms = 0; ms < 100; ms += 5) await clock.advance(5);
  if (plan.length > 0) found["ended"] = group.stats().cancelled > 0 ? "cancelled" : "all";
  return found;
}
