import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { roundOf } from "./queues.ts";
import { DEADLINE_MS, DELIVERED, EMAIL, failed, row, StoreStage } from "./stage.ts";
import { call } from "./store.ts";

const stage = new StoreStage();
const { accept, claim, expand, begin, finish, history, kinds, die, redrive, clock } = stage;

const prune = (ageMs: number, after: number, max = 10) =>
  call(stage.store, "prune", { before: stage.start + ageMs, after, max });

beforeAll(() => stage.open());
beforeEach(() => stage.clear());
afterAll(() => stage.close());

it("redrives the dead that a filter names, with retries and deadline anew", async () => {
  await die("n1");
  await die("n2", { user: "bob" });
  await die("n3", { channel: "webhook" });
  await clock.advance(DEADLINE_MS);
  expect(await redrive({ user: "nobody" })).toBe(0);
  expect(await redrive({ user: "bob", channel: "webhook" })).toBe(0);
  expect(await redrive({ ids: ["n1"], channel: "email" })).toBe(1);
  expect(await redrive({ ids: ["n1"] })).toBe(0);
  expect(kinds("n1")).toBe("accepted matched attempt failed dead redriven");
  const job = await claim(EMAIL);
  expect(await begin(job)).toMatchObject({ kind: "go", attempt: 2, failures: 0 });
  expect(await finish(job, failed(5))).toMatchObject({ to: "queued" });
  expect(await redrive({}, 1)).toBe(1);
  expect(stage.reader.countDead({})).toBe(1);
});

it("buries what the store has put aside, once", async () => {
  await expand([row("n1")]);
  const { notification, round } = roundOf((await claim(EMAIL)).payload);
  const bury = () => call(stage.store, "bury", { run: 1, notification, round, reason: "crashed 9 times" });
  expect(await bury()).toBe(true);
  expect(await bury()).toBe(false);
  expect(history("n1")).toMatchObject({ status: "dead", reason: "crashed 9 times" });
  expect(await call(stage.store, "bury", { run: 1, notification: 99, round, reason: "" })).toBe(false);
});

it("lets no job of an earlier round move what was redriven", async () => {
  await expand([row("n1")]);
  const old = await claim(EMAIL);
  await call(stage.store, "bury", { run: 1, ...roundOf(old.payload), reason: "crashed 9 times" });
  await call(stage.store, "redrive", { run: 1, filter: {}, max: 1 });
  expect(await call(stage.store, "bury", { run: 1, ...roundOf(old.payload), reason: "crashed 9 times" })).toBe(false);
  expect(await begin(old)).toEqual({ kind: "refused" });
  expect(await stage.store.get(old.id)).toBeUndefined();
  expect(await begin(await claim(EMAIL))).toMatchObject({ kind: "go", attempt: 1 });
  expect(kinds("n1")).toBe("accepted matched dead redriven attempt");
});

it("prunes old events whose notifications have all been delivered or dropped, and keeps the rest", async () => {
  await expand([row("n1")], "old");
  const job = await claim(EMAIL);
  await begin(job);
  await finish(job, DELIVERED);
  await die("n2", { user: "bob" });
  await expand([row("n3")], "open");
  await clock.advance(10_000);
  await expand([], "young");
  await accept(["waiting"]);
  expect(await prune(10_000, 0)).toEqual({ last: 3, more: false });
  expect(stage.reader.history("n1")).toBeUndefined();
  expect(["n2", "n3"].map((id) => history(id).status)).toEqual(["dead", "queued"]);
  expect(await accept(["old", "open", "waiting", "young"])).toEqual([true, false, false, false]);
});

it("looks at as many old events as it is told, and goes on from there", async () => {
  for (const id of ["a", "b", "c"]) await expand([], id);
  await clock.advance(1);
  expect(await prune(1, 0, 2)).toEqual({ last: 2, more: true });
  expect(await prune(1, 2, 2)).toEqual({ last: 3, more: false });
  expect(await prune(1, 3, 2)).toEqual({ last: 3, more: false });
  expect(await accept(["a", "b", "c"])).toEqual([true, true, true]);
});

it("redrives at the user's pace, and drops nothing then", async () => {
  const ids = ["n1", "n2", "n3", "n4"];
  for (const id of ids) await die(id, { overLimit: "drop" });
  await clock.advance(60_000);
  expect(await redrive({})).toBe(4);
  for (const _ of ids) await begin(await claim(EMAIL));
  expect(ids.map((id) => history(id).status)).toEqual(["sending", "sending", "deferred", "deferred"]);
  expect(history("n4").entries.at(-1)?.until).toBe(stage.start + 80_000);
});
