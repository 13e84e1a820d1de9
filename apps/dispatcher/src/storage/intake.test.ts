import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { channelQueue, EXPAND_QUEUE } from "./queues.ts";
import { EMAIL, event, LEASE_MS, row, StoreStage } from "./stage.ts";
import { call } from "./store.ts";

const stage = new StoreStage();
const { accept, claim, expand, history, kinds, clock } = stage;

beforeAll(() => stage.open());
beforeEach(() => stage.clear());
afterAll(() => stage.close());

describe("accept", () => {
  it("takes each event once, within a batch and over batches", async () => {
    expect(await accept(["a", "b", "a"])).toEqual([true, true, false]);
    expect(await accept(["b", "c"])).toEqual([false, true]);
    expect((await stage.store.stats(EXPAND_QUEUE)).ready).toBe(3);
    expect(stage.reader.standing().waiting).toBe(3);
  });

  it("writes nothing when there is no room for all of them", async () => {
    expect(await accept(["a", "b"], 3)).toEqual([true, true]);
    expect(await accept(["c", "d"], 3)).toBeUndefined();
    expect(stage.reader.standing().waiting).toBe(2);
    expect((await stage.store.stats(EXPAND_QUEUE)).ready).toBe(2);
    expect(await accept(["c"], 3)).toEqual([true]);
  });

  it("answers for what it knows already, however full it is", async () => {
    await accept(["a", "b"], 2);
    expect(await accept(["b", "a", "b"], 2)).toEqual([false, false, false]);
    expect(await accept(["b", "c", "c"], 3)).toEqual([false, true, false]);
    expect(await accept(["c", "d"], 3)).toBeUndefined();
  });

  it("counts what waits over a restart, and no more what was expanded or abandoned", async () => {
    await accept(["a", "b", "c"], 3);
    await stage.restart();
    expect(await accept(["d"], 3)).toBeUndefined();
    const [first, second] = [await claim(EXPAND_QUEUE), await claim(EXPAND_QUEUE)];
    await call(stage.store, "expand", { run: 1, claim: first, event: Number(first.payload), planned: [] });
    await call(stage.store, "abandon", { claim: second, event: Number(second.payload), reason: "no rule fits" });
    expect(stage.reader.standing().waiting).toBe(1);
    expect(await accept(["d", "e"], 3)).toEqual([true, true]);
  });

  it("keeps an event as it came", async () => {
    const data = JSON.stringify({ text: "Grüße \u2028 🎉", list: [1, null] });
    const full = { ...event("a"), subject: "s", time: "2026-11-29T00:00:00Z", data };
    await call(stage.store, "accept", { capacity: 1, events: [full] });
    expect(stage.reader.event(1)).toEqual({
      event: { ...full, data: JSON.parse(data) as unknown },
      characters: data.length,
    });
  });
});

describe("expand", () => {
  it("makes each notification and its job, and ends the event's", async () => {
    const planned = [row("n1"), row("n2", { channel: "webhook" }), row("n3", { user: "bob" })];
    expect(await expand(planned)).toEqual({ kind: "expanded", created: 3 });
    expect(await stage.store.stats(EXPAND_QUEUE)).toMatchObject({ ready: 0, running: 0 });
    expect((await stage.store.stats(EMAIL)).ready).toBe(2);
    expect((await stage.store.stats(channelQueue("webhook"))).ready).toBe(1);
    expect(kinds("n1")).toBe("accepted matched");
    expect(history("n1")).toMatchObject({ status: "queued", user: "ann", event: { source: "here" } });
  });

  it("makes no notification that is there already", async () => {
    await expand([row("n1")], "a");
    expect(await expand([row("n1"), row("n2")], "b")).toEqual({ kind: "expanded", created: 1 });
    expect((await stage.store.stats(EMAIL)).ready).toBe(2);
  });

  it("changes nothing with a claim that is lost", async () => {
    await accept(["a"]);
    const old = await claim(EXPAND_QUEUE);
    await clock.advance(LEASE_MS);
    await stage.store.sweep();
    const job = await claim(EXPAND_QUEUE);
    const facts = { run: 1, event: Number(job.payload), planned: [row("n1")] };
    expect(await call(stage.store, "expand", { ...facts, claim: old })).toEqual({ kind: "refused" });
    expect(stage.reader.history("n1")).toBeUndefined();
    expect(stage.reader.standing().waiting).toBe(1);
    expect(await call(stage.store, "expand", { ...facts, claim: job })).toMatchObject({ created: 1 });
    expect(await call(stage.store, "expand", { ...facts, claim: job })).toEqual({ kind: "refused" });
    expect(stage.reader.standing().waiting).toBe(0);
  });

  it("abandons an event once", async () => {
    await accept(["a"]);
    const job = await claim(EXPAND_QUEUE);
    const input = { claim: job, event: Number(job.payload), reason: "no rule fits" };
    expect(await call(stage.store, "abandon", input)).toBe(true);
    expect(await call(stage.store, "abandon", input)).toBe(false);
    expect(await call(stage.store, "abandon", { ...input, claim: undefined })).toBe(false);
    expect(stage.reader.standing().waiting).toBe(0);
  });
});
