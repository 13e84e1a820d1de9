import { afterEach, describe, expect, it } from "vitest";
import { VirtualClock } from "sluice/testing";
import { KINDS, openSeatHolds, type OpenOptions } from "./open.ts";
import type { SeatHolds } from "./seat-holds.ts";
import { cleanUp, leftBy, newPath, opened } from "./seat-holds.stage.ts";
import type { Seats } from "./seats.ts";

const HOLD_MS = 300_000;
const JUMP_MS = 1_200_000;
/** What they promise; all else is the same for the three. */
const PROMISES = {
  sweep: { lateMs: 60_000, outlivesProcess: true, tellsAgain: false, clock: "wall" },
  "delay queue": { lateMs: 0, outlivesProcess: false, tellsAgain: false, clock: "monotonic" },
  job: { lateMs: 0, outlivesProcess: true, tellsAgain: true, clock: "wall" },
} as const;

afterEach(cleanUp);

describe.each(KINDS)("%s", (kind) => {
  const { lateMs, outlivesProcess, tellsAgain, clock: ownClock } = PROMISES[kind];

  async function open(options: Partial<OpenOptions> & { readonly clock: VirtualClock }): Promise<Opened> {
    const freed: string[] = [];
    const onFreed = (seat: string): unknown => freed.push(seat);
    const all = { path: newPath(), seats: ["A1", "A2"], onFreed, ...options };
    const holds = await openSeatHolds(kind, all);
    opened.push(() => holds.close());
    return { holds, seats: holds.seats, freed };
  }

  it("holds a seat for one, until its time is over and not longer than it says", async () => {
    const clock = new VirtualClock();
    const { holds, seats, freed } = await open({ clock });
    await clock.advance(500);
    expect(holds.hold("A1", "ann")).toMatchObject({ seat: "A1" });
    expect(holds.hold("A1", "bob")).toBeUndefined();
    await clock.advance(HOLD_MS - 1);
    expect([seats.stateOf("A1"), freed]).toEqual(["held", []]);
    await clock.advance(1 + lateMs);
    expect([seats.stateOf("A1"), freed]).toEqual(["free", ["A1"]]);
    expect(holds.hold("A1", "bob")).toMatchObject({ seat: "A1" });
  });

  it("holds a seat that was extended from then on, and doesn't end it by its old time", async () => {
    const clock = new VirtualClock();
    const { holds, seats, freed } = await open({ clock });
    holds.hold("A1", "ann");
    await clock.advance(HOLD_MS - 1_000);
    expect(holds.extend("A1", "bob")).toBeUndefined();
    expect(holds.extend("A1", "ann")).toMatchObject({ seat: "A1" });
    await clock.advance(HOLD_MS - 1);
    expect(seats.stateOf("A1")).toBe("held");
    await clock.advance(1 + lateMs);
    expect([seats.stateOf("A1"), freed]).toEqual(["free", ["A1"]]);
    expect(holds.extend("A1", "ann")).toBeUndefined();
  });

  it("leaves a seat that was bought alone", async () => {
    const clock = new VirtualClock();
    const { holds, seats, freed } = await open({ clock });
    holds.hold("A1", "ann");
    expect(holds.buy("A1", "bob")).toBe(false);
    expect(holds.buy("A1", "ann")).toBe(true);
    await clock.advance(HOLD_MS + JUMP_MS);
    expect([seats.stateOf("A1"), freed]).toEqual(["sold", []]);
    expect(holds.buy("A1", "ann")).toBe(false);
  });

  it("doesn't sell to somebody whose hold is over", async () => {
    const clock = new VirtualClock();
    const { holds } = await open({ clock });
    holds.hold("A1", "ann");
    await clock.advance(HOLD_MS + lateMs);
    expect(holds.buy("A1", "ann")).toBe(false);
    holds.hold("A1", "bob");
    expect([holds.buy("A1", "ann"), holds.buy("A1", "bob")]).toEqual([false, true]);
  });

  it("goes on after somebody couldn't be told, and tells the others", async () => {
    const clock = new VirtualClock();
    const told: string[] = [];
    const errors: unknown[] = [];
    const onFreed = (seat: string): void => {
      told.push(seat);
      if (told.length === 1) throw new Error("nobody at home");
    };
    const { holds } = await open({ clock, onFreed, onError: (error) => errors.push(error) });
    holds.hold("A1", "ann");
    holds.hold("A2", "bob");
    await clock.advance(HOLD_MS + lateMs + 10_000);
    expect(told).toEqual(tellsAgain ? ["A1", "A2", "A1"] : ["A1", "A2"]);
    expect(errors).toHaveLength(tellsAgain ? 0 : 1); // a job keeps its errors itself
    holds.hold("A1", "ann");
    await clock.advance(HOLD_MS + lateMs);
    expect(told.filter((seat) => seat === "A1")).toHaveLength(tellsAgain ? 3 : 2);
  });

  it(`is ${ownClock === "wall" ? "moved" : "not moved"} when the wall clock is set forward or back`, async () => {
    const clock = new VirtualClock({ wallStartAt: 10 * JUMP_MS });
    const { holds, seats } = await open({ clock });
    holds.hold("A1", "ann");
    await clock.advance(1_000);
    clock.jumpWall(JUMP_MS);
    await clock.advance(60_000);
    expect(seats.stateOf("A1")).toBe(ownClock === "wall" ? "free" : "held"); // minutes early
    await clock.advance(JUMP_MS);
    holds.hold("A2", "ann");
    clock.jumpWall(-JUMP_MS);
    await clock.advance(HOLD_MS + lateMs);
    expect(seats.stateOf("A2")).toBe(ownClock === "wall" ? "held" : "free"); // by as much as it was set back
    await clock.advance(JUMP_MS);
    expect(seats.stateOf("A2")).toBe("free");
  });

  it(`${outlivesProcess ? "ends" : "has forgotten"} a hold whose process has died`, async () => {
    const path = await leftBy(kind, HOLD_MS, "held");
    const clock = new VirtualClock({ wallStartAt: Date.now() });
    const { seats, freed } = await open({ clock, path });
    expect(seats.stateOf("A1")).toBe("held");
    await clock.advance(HOLD_MS + lateMs);
    expect([seats.stateOf("A1"), freed]).toEqual(outlivesProcess ? ["free", ["A1"]] : ["held", []]);
  });

  it(`${tellsAgain ? "tells" : "doesn't tell"} again when the process died while it told`, async () => {
    const path = await leftBy(kind, 1, "telling");
    const clock = new VirtualClock({ wallStartAt: Date.now() });
    const { seats, freed } = await open({ clock, path });
    await clock.advance(60_000);
    expect([seats.stateOf("A1"), freed]).toEqual(["free", tellsAgain ? ["A1"] : []]);
  });

  it("ends 10 000 holds, with timers that are not one for each", async () => {
    const clock = new VirtualClock();
    const names = Array.from({ length: 10_000 }, (_, index) => `S${index}`);
    const { holds, freed } = await open({ clock, seats: names });
    for (const name of names) holds.hold(name, "ann");
    await clock.advance(0);
    expect(clock.timers).toBeLessThanOrEqual(3);
    await clock.advance(HOLD_MS - 1);
    expect(freed).toEqual([]);
    await clock.advance(1 + lateMs);
    expect(new Set(freed).size).toBe(10_000);
  });

  it("leaves no timer when it is closed, in the midst of holds too", async () => {
    const clock = new VirtualClock();
    const { holds } = await open({ clock });
    holds.hold("A1", "ann");
    await clock.advance(1_000);
    await holds.close();
    expect(clock.timers).toBe(0);
  });
});

interface Opened {
  readonly holds: SeatHolds;
  readonly seats: Seats;
  readonly freed: string[];
}
