import * as fc from "fast-check";
import { expect, it } from "vitest";
import type { NotificationStatus } from "../model.ts";
import { RunCounts, SETTLED_STATUSES } from "./run-counts.ts";

const move = (from: NotificationStatus | undefined, to: NotificationStatus, reason?: string) => ({ from, to, reason });

it("counts a notification once, where it rests now", () => {
  const counts = new RunCounts();
  counts.moved("email", move(undefined, "deferred"));
  counts.moved("email", move("deferred", "sending"));
  expect(counts.notifications).toBe(0);
  counts.moved("email", move("sending", "delivered"));
  counts.moved("webhook", move("queued", "dead"));
  expect(SETTLED_STATUSES.map((status) => counts.count(status))).toEqual([1, 0, 0, 1]);
  expect(counts.count("delivered", "email")).toBe(1);
  expect(counts.channels()).toEqual(["email", "webhook"]);
});

it("does not take off what another run had put there", () => {
  const counts = new RunCounts();
  counts.moved("email", move(undefined, "delivered"));
  expect(counts.count("deferred")).toBe(0);
});

it("keeps apart why notifications were dropped, without growing for ever", () => {
  const counts = new RunCounts();
  for (const n of Array.from({ length: 200 }, (_, i) => i))
    counts.moved("email", move("queued", "dropped", `why ${n}`));
  counts.moved("email", move("queued", "dropped", "why 0"));
  expect(counts.dropReasons().get("why 0")).toBe(2);
  expect(counts.dropReasons().size).toBeLessThanOrEqual(51);
  expect([...counts.dropReasons().values()].reduce((sum, times) => sum + times)).toBe(201);
});

it("agrees with a count of what is where, after any walk", () => {
  const walk = fc.array(
    fc.tuple(fc.nat(4), fc.constantFrom(...SETTLED_STATUSES, "queued" as const, "sending" as const)),
  );
  fc.assert(
    fc.property(walk, (moves) => {
      const counts = new RunCounts();
      const where = new Map<number, NotificationStatus>();
      for (const [n, to] of moves) {
        counts.moved("email", move(where.get(n), to));
        where.set(n, to);
      }
      for (const status of SETTLED_STATUSES)
        expect(counts.count(status)).toBe([...where.values()].filter((each) => each === status).length);
    }),
  );
});
