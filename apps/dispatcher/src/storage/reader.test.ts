import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { EXPAND_QUEUE } from "./queues.ts";
import { Reader } from "./reader.ts";
import { call, openStore } from "./store.ts";

it("lists the notifications of an event as they were planned, and no other event's", async () => {
  const folder = await mkdtemp(join(tmpdir(), "reader-"));
  const store = await openStore(join(folder, "dispatcher.sqlite"));
  const reader = new Reader(join(folder, "dispatcher.sqlite"));
  try {
    const event = { id: "1", source: "here", type: "a", subject: undefined, time: undefined, data: "{}" };
    const events = [event, { ...event, source: "there" }];
    await call(store, "accept", { capacity: 10, events });
    const jobs = await store.claim({ queue: EXPAND_QUEUE, max: 2, leaseMs: 1_000, worker: "test" });
    for (const [i, claim] of jobs.entries()) {
      const ids = i === 0 ? ["n2", "n1"] : ["n3"];
      const planned = ids.map((id) => ({
        id,
        user: "ann",
        channel: "email",
        rule: "r",
        template: "t",
        overLimit: "defer" as const,
      }));
      await call(store, "expand", { run: 1, claim, event: Number(claim.payload), planned });
    }
    const summary = { user: "ann", channel: "email", rule: "r", status: "queued", reason: undefined };
    expect(reader.ofEvent("here", "1", 10)).toEqual([
      { id: "n2", ...summary },
      { id: "n1", ...summary },
    ]);
    expect(reader.ofEvent("here", "1", 1).map(({ id }) => id)).toEqual(["n2"]);
    expect(reader.ofEvent("there", "1", 10).map(({ id }) => id)).toEqual(["n3"]);
    expect(reader.ofEvent("nowhere", "1", 10)).toEqual([]);
  } finally {
    reader.close();
    await store.close();
    await rm(folder, { recursive: true });
  }
});
