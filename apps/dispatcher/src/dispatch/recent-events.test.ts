import { VirtualClock } from "sluice/testing";
import { expect, it } from "vitest";
import type { StoredEvent } from "../storage/reader.ts";
import { type RecentEvents, recentEvents } from "./recent-events.ts";

function cache(characters: number): { events: RecentEvents; read: number[] } {
  const read: number[] = [];
  const answer = (n: number): StoredEvent | undefined => {
    read.push(n);
    if (n < 0) throw new Error("the file can't be read");
    return n === 0 ? undefined : { event: { id: String(n), source: "here", type: "thing", data: null }, characters };
  };
  return { events: recentEvents(answer, new VirtualClock()), read };
}

it("reads an event once for all of its notifications, at one time or one after the other", async () => {
  const { events, read } = cache(10);
  const [first, second] = await Promise.all([events.load(1), events.load(1)]);
  expect(first?.event.id).toBe("1");
  expect(second).toBe(first);
  expect(await events.load(1)).toBe(first);
  expect(read).toEqual([1]);
});

it("keeps a thousand small events", async () => {
  const { events, read } = cache(10);
  for (let n = 1; n <= 1_000; n += 1) await events.load(n);
  for (let n = 1; n <= 1_000; n += 1) await events.load(n);
  expect(read).toHaveLength(1_000);
  await events.load(1_001);
  expect(events.size).toBe(1_000);
});

it("keeps as many large events as its memory allows, and one however large it is", async () => {
  const { events, read } = cache(1024 * 1024);
  for (const n of [1, 2, 3, 4, 1, 2, 3, 4]) await events.load(n);
  expect(read).toEqual([1, 2, 3, 4]);
  await events.load(5);
  expect(events.size).toBe(4);
  const huge = cache(1e9);
  for (const n of [1, 1, 2, 1]) await huge.events.load(n);
  expect(huge.read).toEqual([1, 2, 1]);
});

it("does not remember that an event is gone", async () => {
  const { events, read } = cache(10);
  expect([await events.load(0), await events.load(0)]).toEqual([undefined, undefined]);
  expect(read).toEqual([0, 0]);
  expect(events.size).toBe(0);
});

it("does not remember that a read failed, and tells all who waited for it", async () => {
  const { events, read } = cache(10);
  const failed = await Promise.allSettled([events.load(-1), events.load(-1)]);
  expect(failed.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  await expect(events.load(-1)).rejects.toThrow("can't be read");
  expect(read).toEqual([-1, -1]);
});

it("ends every wait within a few turns of the call, so that a stop need not", async () => {
  const { events } = cache(10);
  const ended: string[] = [];
  for (const n of [1, 1, 0, -1])
    void events.load(n).then(
      () => ended.push("read"),
      () => ended.push("failed"),
    );
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
  expect(ended.toSorted()).toEqual(["failed", "read", "read", "read"]);
  expect(events.stats().loading).toBe(0);
});
