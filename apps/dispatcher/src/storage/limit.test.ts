import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { channelQueue } from "./queues.ts";
import { EMAIL, LEASE_MS, row, StoreStage } from "./stage.ts";

const stage = new StoreStage();
const { claim, expand, begin, history, kinds, clock } = stage;

beforeAll(() => stage.open());
beforeEach(() => stage.clear());
afterAll(() => stage.close());

it("lets a burst through at once and gives each later one the next token, charged in advance", async () => {
  await expand(["n1", "n2", "n3", "n4"].map((id) => row(id)));
  const answers = [];
  for (let i = 0; i < 4; i += 1) answers.push(await begin(await claim(EMAIL)));
  expect(answers.map((answer) => (answer.kind === "changed" ? answer.to : answer.kind))).toEqual([
    "go",
    "go",
    "deferred",
    "deferred",
  ]);
  expect(history("n3").entries.at(-1)).toMatchObject({ kind: "deferred", until: stage.start + 10_000 });
  expect(history("n4").entries.at(-1)).toMatchObject({ kind: "deferred", until: stage.start + 20_000 });
  await clock.advance(9_999);
  expect(await stage.store.claim({ queue: EMAIL, max: 9, leaseMs: LEASE_MS, worker: "test" })).toEqual([]);
  await clock.advance(1);
  expect(await begin(await claim(EMAIL))).toMatchObject({ kind: "go", from: "deferred" });
  expect(kinds("n3")).toBe("accepted matched deferred attempt");
});

it("gives no second burst after a restart", async () => {
  await expand(["n1", "n2", "n3"].map((id) => row(id)));
  for (const _ of [1, 2]) expect(await begin(await claim(EMAIL))).toMatchObject({ kind: "go" });
  await stage.restart();
  expect(await begin(await claim(EMAIL))).toMatchObject({ kind: "changed", to: "deferred" });
});

it("drops what exceeds it where the rule says so, which costs the user nothing", async () => {
  await expand([row("n1"), row("n2"), row("n3", { overLimit: "drop" }), row("n4")]);
  for (const _ of [1, 2]) await begin(await claim(EMAIL));
  expect(await begin(await claim(EMAIL))).toMatchObject({ to: "dropped", reason: "over the limit of 2 in 20 s" });
  expect(kinds("n3")).toBe("accepted matched dropped");
  expect(await begin(await claim(EMAIL))).toMatchObject({ to: "deferred" });
  expect(history("n4").entries.at(-1)?.until).toBe(stage.start + 10_000);
});

it("is each user's own, over all channels", async () => {
  const perUser = { count: 1, perMs: 1_000 };
  await expand([row("n1"), row("n2", { channel: "webhook" }), row("n3", { user: "bob" })]);
  expect(await begin(await claim(EMAIL), { perUser })).toMatchObject({ kind: "go" });
  expect(await begin(await claim(channelQueue("webhook")), { perUser })).toMatchObject({ to: "deferred" });
  expect(await begin(await claim(EMAIL), { perUser })).toMatchObject({ kind: "go" });
});

it("gives those who missed their turns together new ones, and not all at once", async () => {
  const ids = ["n1", "n2", "n3", "n4", "n5", "n6"];
  await expand(ids.map((id) => row(id)));
  for (const _ of ids) await begin(await claim(EMAIL));
  expect(history("n6").entries.at(-1)?.until).toBe(stage.start + 40_000);
  await clock.advance(3_600_000); // nobody was there
  for (const _ of ["n3", "n4", "n5", "n6"]) await begin(await claim(EMAIL));
  expect(ids.slice(2).map((id) => history(id).status)).toEqual(["sending", "sending", "deferred", "deferred"]);
  expect(kinds("n6")).toBe("accepted matched deferred deferred");
  expect(history("n6").entries.at(-1)).toMatchObject({
    until: stage.start + 3_620_000,
    detail: "over the limit of 2 in 20 s, and its turn was missed",
  });
});

it("lets one go that comes a little late to its turn", async () => {
  const ids = ["n1", "n2", "n3", "n4", "n5", "n6"]; // the last has reserved the token of 40 s
  await expand(ids.map((id) => row(id)));
  for (const _ of ids) await begin(await claim(EMAIL));
  await clock.advance(10_000 + 20_000);
  expect(await begin(await claim(EMAIL))).toMatchObject({ kind: "go", from: "deferred" });
});
