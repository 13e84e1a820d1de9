import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { roundOf } from "./queues.ts";
import { DEADLINE_MS, DELIVERED, EMAIL, failed, LEASE_MS, row, StoreStage } from "./stage.ts";
import { call } from "./store.ts";

const stage = new StoreStage();
const { claim, expand, attempting, begin, finish, turnAway, history, kinds, clock } = stage;

beforeAll(() => stage.open());
beforeEach(() => stage.clear());
afterAll(() => stage.close());

describe("begin and finish", () => {
  it("record the intent, then the outcome, and end the job with it", async () => {
    await expand([row("n1")]);
    const job = await claim(EMAIL);
    expect(await begin(job)).toEqual({ kind: "go", attempt: 1, failures: 0, from: "queued" });
    expect(kinds("n1")).toBe("accepted matched attempt");
    expect(history("n1").status).toBe("sending");
    await clock.advance(12);
    expect(await finish(job, DELIVERED)).toMatchObject({ kind: "changed", from: "sending", to: "delivered" });
    expect(history("n1").entries.slice(2)).toEqual([
      { at: stage.start, kind: "attempt", attempt: 1 },
      { at: stage.start + 12, kind: "delivered", attempt: 1, durationMs: 12, detail: "250 taken" },
    ]);
    expect(await stage.store.get(job.id)).toBeUndefined();
  });

  it("change nothing with a claim that is lost, nor a second time", async () => {
    await expand([row("n1")]);
    const old = await claim(EMAIL);
    await begin(old);
    await clock.advance(LEASE_MS);
    await stage.store.sweep();
    const job = await claim(EMAIL);
    for (const outcome of [DELIVERED, failed(10), failed(undefined), { kind: "interrupted", durationMs: 1 } as const])
      expect(await finish(old, outcome)).toEqual({ kind: "refused" });
    expect(await begin(old)).toEqual({ kind: "refused" });
    expect(await turnAway(old, 1_000)).toEqual({ kind: "refused" });
    expect(await call(stage.store, "close", { ...attempting(old), to: "dead", reason: "old" })).toEqual({
      kind: "refused",
    });
    expect(kinds("n1")).toBe("accepted matched attempt");
    expect(await begin(job)).toMatchObject({ attempt: 2 });
    expect(await finish(job, DELIVERED)).toMatchObject({ to: "delivered" });
    expect(await finish(job, DELIVERED)).toEqual({ kind: "refused" });
    expect(await finish(job, failed(undefined))).toEqual({ kind: "refused" });
    expect(kinds("n1")).toBe("accepted matched attempt unknown attempt delivered");
  });

  it("say of an attempt without outcome that it isn't known, and charge the user once", async () => {
    await expand([row("n1"), row("n2")]);
    await begin(await claim(EMAIL));
    await clock.advance(LEASE_MS);
    await stage.store.sweep();
    expect(await begin(await claim(EMAIL))).toMatchObject({ kind: "go", attempt: 2, failures: 0 });
    expect(kinds("n1")).toBe("accepted matched attempt unknown attempt");
    expect(await begin(await claim(EMAIL), { perUser: { count: 2, perMs: 1e9 } })).toMatchObject({ kind: "go" });
  });

  it("put it back for its retry at the time that was asked for, without charging the user again", async () => {
    await expand([row("n1")]);
    const first = await claim(EMAIL);
    await begin(first, { perUser: { count: 1, perMs: 1e9 } });
    expect(await finish(first, failed(699.5))).toMatchObject({ from: "sending", to: "queued", reason: "451 later" });
    expect(await stage.store.nextAt(EMAIL)).toBe(stage.start + 700);
    await clock.advance(700);
    const second = await claim(EMAIL);
    expect(await begin(second, { perUser: { count: 1, perMs: 1e9 } })).toMatchObject({ attempt: 2, failures: 1 });
    await finish(second, DELIVERED);
    expect(kinds("n1")).toBe("accepted matched attempt failed attempt delivered");
    expect(history("n1").entries[3]).toMatchObject({ kind: "failed", until: stage.start + 700, detail: "451 later" });
  });

  it.each([
    ["a permanent failure", failed(undefined, true), "451 later"],
    ["a permanent failure, whatever retry it names", failed(5, true), "451 later"],
    ["the last failure", failed(undefined), "failed 1 times, at last with: 451 later"],
    ["a retry at the deadline", failed(DEADLINE_MS), /deadline.*451 later/],
  ])("make it dead after %s", async (_, outcome, reason) => {
    await expand([row("n1")]);
    const job = await claim(EMAIL);
    await begin(job);
    expect(await finish(job, outcome)).toMatchObject({ to: "dead" });
    expect(history("n1").reason).toMatch(reason);
    expect(kinds("n1")).toBe("accepted matched attempt failed dead");
    expect(await stage.store.get(job.id)).toBeUndefined();
    expect(stage.reader.dead({}, 10)).toMatchObject([{ id: "n1", diedAt: stage.start }]);
  });

  it("retry up to the deadline, and not after it", async () => {
    await expand([row("n1")]);
    const first = await claim(EMAIL);
    await begin(first);
    expect(await finish(first, failed(DEADLINE_MS - 1))).toMatchObject({ to: "queued" });
    await clock.advance(DEADLINE_MS);
    expect(await begin(await claim(EMAIL))).toMatchObject({ kind: "changed", to: "dead" });
    expect(kinds("n1")).toBe("accepted matched attempt failed dead");
    expect(await stage.store.nextAt(EMAIL)).toBeUndefined();
  });

  it("give an interrupted attempt back at once, as one whose outcome isn't known", async () => {
    await expand([row("n1")]);
    const job = await claim(EMAIL);
    await begin(job);
    expect(await finish(job, { kind: "interrupted", durationMs: 4 })).toMatchObject({ to: "queued" });
    expect(await begin(await claim(EMAIL))).toMatchObject({ kind: "go", attempt: 2, failures: 0 });
    expect(kinds("n1")).toBe("accepted matched attempt unknown attempt");
  });

  it("end the job of a notification that has ended", async () => {
    await expand([row("n1")]);
    const job = await claim(EMAIL);
    await call(stage.store, "bury", { run: 1, ...roundOf(job.payload), reason: "poison" });
    expect(await begin(job)).toEqual({ kind: "refused" });
    expect(await stage.store.get(job.id)).toBeUndefined();
    expect(kinds("n1")).toBe("accepted matched dead");
  });
});

it("says where a notification was before only to the run that had put it there", async () => {
  await expand([row("n1"), row("n2")]);
  await turnAway(await claim(EMAIL), 1_000);
  await turnAway(await claim(EMAIL), 1_000);
  await clock.advance(1_000);
  const [first, second] = [await claim(EMAIL), await claim(EMAIL)];
  expect(await begin(first, { run: 2 })).toMatchObject({ kind: "go", from: undefined });
  expect(await begin(second)).toMatchObject({ kind: "go", from: "deferred" });
  expect(await finish(first, DELIVERED, { run: 2 })).toMatchObject({ from: "sending" });
});

describe("turnAway", () => {
  it("defers without an attempt or a token, one step of history for all times in a row", async () => {
    await expand([row("n1")]);
    for (let times = 1; times <= 3; times += 1) {
      expect(await turnAway(await claim(EMAIL), 999.5)).toMatchObject({ kind: "changed", to: "deferred" });
      await clock.advance(1_000);
    }
    expect(kinds("n1")).toBe("accepted matched deferred");
    expect(history("n1").entries.at(-1)).toMatchObject({ until: stage.start + 3_000 });
    expect(history("n1").reason).toMatch(/mail\.test .* 3 times/);
    expect(await begin(await claim(EMAIL), { perUser: { count: 1, perMs: 1e9 } })).toMatchObject({ attempt: 1 });
    expect(kinds("n1")).toBe("accepted matched deferred attempt");
  });

  it("keeps the step of an earlier row of times", async () => {
    await expand([row("n1")]);
    await turnAway(await claim(EMAIL), 1_000);
    await clock.advance(1_000);
    const job = await claim(EMAIL);
    await begin(job);
    await finish(job, failed(0));
    await turnAway(await claim(EMAIL), 1_000);
    expect(kinds("n1")).toBe("accepted matched deferred attempt failed deferred");
  });

  it("does not go on past the deadline", async () => {
    await expand([row("n1")]);
    const job = await claim(EMAIL);
    await begin(job);
    await finish(job, failed(0));
    await clock.advance(DEADLINE_MS);
    expect(await turnAway(await claim(EMAIL), 1_000)).toMatchObject({ to: "dead" });
  });

  it("waits without a deadline while nothing was attempted", async () => {
    await expand([row("n1")]);
    await turnAway(await claim(EMAIL), 3 * DEADLINE_MS);
    await clock.advance(3 * DEADLINE_MS);
    expect(await turnAway(await claim(EMAIL), 1_000)).toMatchObject({ to: "deferred" });
  });
});
