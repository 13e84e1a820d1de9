import { afterEach, expect, it } from "vitest";
import { SqliteStore } from "@sluice/jobs/sqlite";
import { QueueFullError } from "sluice";
import { VirtualClock } from "sluice/testing";
import { JobExpiry } from "./job-expiry.ts";
import { openSeatHolds } from "./open.ts";
import { SeatHolds } from "./seat-holds.ts";
import { cleanUp, leftBy, newPath, opened } from "./seat-holds.stage.ts";
import { Seats } from "./seats.ts";

const HOLD_MS = 300_000;

afterEach(cleanUp);

it("refuses a hold that the delay queue has no room for, and the seat stays free", async () => {
  const clock = new VirtualClock();
  const options = { path: newPath(), seats: ["A1", "A2"], onFreed: () => {}, capacity: 1, clock };
  const holds = await openSeatHolds("delay queue", options);
  opened.push(() => holds.close());
  holds.hold("A1", "ann");
  expect(() => holds.hold("A2", "bob")).toThrow(QueueFullError);
  expect(holds.seats.stateOf("A2")).toBe("free");
});

it("keeps no hold whose end could not be planned", () => {
  const seats = new Seats(newPath());
  seats.add(["A1"]);
  const error = new Error("no room");
  const plan = (): never => {
    throw error;
  };
  const expiry = { plan, start: () => {}, stop: () => Promise.resolve() };
  const holds = new SeatHolds(seats, expiry, { holdMs: HOLD_MS });
  opened.push(() => holds.close());
  expect(() => holds.hold("A1", "ann")).toThrow(error);
  expect(seats.stateOf("A1")).toBe("free");
});

it("adds the job with the hold, or not at all", async () => {
  const path = newPath();
  const seats = new Seats(path);
  const expiry = await JobExpiry.open(seats, { path, onFreed: () => {} });
  const store = await SqliteStore.open({ path });
  opened.push(async () => {
    await Promise.all([expiry.stop(), store.close()]);
    seats.close();
  });
  const plan = (): void => expiry.plan({ seat: "A1", number: 1, untilAt: 0 });
  seats.within(plan);
  const undo = (): void => {
    plan();
    throw new Error("undone");
  };
  expect(() => seats.within(undo)).toThrow("undone");
  expect(await store.list({ queue: "hold-over" })).toHaveLength(1);
});

it("ends what a delay queue forgot by a sweep that stands behind it", async () => {
  const path = await leftBy("delay queue", HOLD_MS, "held");
  const clock = new VirtualClock({ wallStartAt: Date.now() });
  const freed: string[] = [];
  const options = { path, seats: ["A1"], onFreed: (seat: string) => freed.push(seat), clock };
  for (const kind of ["delay queue", "sweep"] as const) {
    const holds = await openSeatHolds(kind, options);
    opened.push(() => holds.close());
  }
  await clock.advance(HOLD_MS + 60_000);
  expect(freed).toEqual(["A1"]);
});
