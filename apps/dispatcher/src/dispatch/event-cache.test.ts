import { expect, it } from "vitest";
import type { StoredEvent } from "../storage/reader.ts";
import { EventCache } from "./event-cache.ts";

function cache(characters: number): { events: EventCache; read: number[] } {
  const read: number[] = [];
  const events = new EventCache((n): StoredEvent | undefined => {
    read.push(n);
    return n === 0 ? undefined : { event: { id: String(n), source: "here", type: "thing", data: null }, characters };
  });
  return { events, read };
}

it("reads an event once while its notifications go out one after the other", () => {
  const { events, read } = cache(10);
  expect(events.get(1)).toBe(events.get(1));
  expect(read).toEqual([1]);
});

it("keeps a thousand small events, those that were used last", () => {
  const { events, read } = cache(10);
  for (let n = 1; n <= 1_000; n += 1) events.get(n);
  events.get(1);
  events.get(1_001);
  events.get(1);
  expect(read).toHaveLength(1_001);
  events.get(2);
  expect(read.at(-1)).toBe(2);
});

it("keeps as many large events as its memory allows, and one however large it is", () => {
  const { events, read } = cache(1024 * 1024);
  for (let n = 1; n <= 5; n += 1) events.get(n);
  for (let n = 2; n <= 5; n += 1) events.get(n);
  expect(read).toEqual([1, 2, 3, 4, 5]);
  events.get(1);
  expect(read).toHaveLength(6);
  const huge = cache(1e9);
  huge.events.get(1);
  huge.events.get(1);
  expect(huge.read).toEqual([1]);
  huge.events.get(2);
  huge.events.get(1);
  expect(huge.read).toEqual([1, 2, 1]);
});

it("does not remember that an event is gone", () => {
  const { events, read } = cache(10);
  expect([events.get(0), events.get(0)]).toEqual([undefined, undefined]);
  expect(read).toEqual([0, 0]);
});
