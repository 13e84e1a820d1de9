import { expect, it } from "vitest";
import { ClosedError } from "../errors.ts";
import { PriorityQueue } from "./priority-queue.ts";

it("puts an item in with its options, and keeps its place when they are bad", async () => {
  const queue = new PriorityQueue<string>(3);
  queue.offer("first");
  const place = await queue.reserve();
  expect(() => place.put("urgent", { priority: Number.NaN })).toThrow("priority must be finite, got NaN");
  expect([place.put("urgent", { priority: 9 }), queue.pollBatch(9)]).toEqual([true, ["urgent", "first"]]);
  expect(() => place.put("again")).toThrow(ClosedError);
});

it("gives the place back at the end of its block, once", async () => {
  const queue = new PriorityQueue<string>(2);
  const other = await queue.reserve();
  {
    using place = await queue.reserve();
    expect([queue.offer("a"), queue.stats().reserved]).toEqual([false, 2]);
    place.release();
    place.release();
  }
  expect([queue.stats().reserved, queue.offer("a"), queue.offer("b")]).toEqual([1, true, false]);
  expect(other.put("c")).toBe(true);
  {
    using _ = queue.tryReserve();
  }
  queue.poll();
  {
    using _ = await queue.reserve();
    expect(queue.stats().reserved).toBe(1);
  }
  expect(queue.stats().reserved).toBe(0);
});

it("tells that an item isn't in when the queue has failed", async () => {
  const queue = new PriorityQueue<string>(1);
  const place = await queue.reserve();
  queue.fail("down");
  expect(place.put("late")).toBe(false);
});
