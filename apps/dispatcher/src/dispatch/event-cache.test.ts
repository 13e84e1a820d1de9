import { expect, it } from "vitest";
import type { Event } from "../model.ts";
import { EventCache } from "./event-cache.ts";

function cache(): { events: EventCache; read: number[] } {
  const read: number[] = [];
  const events = new EventCache((n): Event | undefined => {
    read.push(n);
    return n === 0 ? undefined : { id: String(n), source: "here", type: "thing", data: null };
  });
  return { events, read };
}

it("reads an event once while its notifications go out one after the other", () => {
  const { events, read } = cache();
  expect(events.get(1)).toBe(events.get(1));
  expect(read).toEqual([1]);
});

it("keeps those that were used last, and not more of them for ever", () => {
  const { events, read } = cache();
  for (let n = 1; n <= 32; n += 1) events.get(n);
  events.get(1);
  events.get(33);
  events.get(1);
  expect(read).toHaveLength(33);
  events.get(2);
  expect(read.at(-1)).toBe(2);
  expect(read).toHaveLength(34);
});

it("does not remember that an event is gone", () => {
  const { events, read } = cache();
  expect([events.get(0), events.get(0)]).toEqual([undefined, undefined]);
  expect(read).toEqual([0, 0]);
});
