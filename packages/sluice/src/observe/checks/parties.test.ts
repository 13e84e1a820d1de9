import { expect, it } from "vitest";
import { Barrier } from "../../sync/barrier.ts";
import { Latch } from "../../sync/latch.ts";
import { VirtualClock } from "../../testing/virtual-clock.ts";
import { doctor } from "../doctor.ts";
import type { Report } from "../report.ts";

function look(name: string, clock: VirtualClock): Report[] {
  return doctor({ clock }).filter(({ subject }) => subject.name === name);
}

it("F11.1: H11 names the party that does not come", async () => {
  const clock = new VirtualClock();
  const barrier = new Barrier(0, { name: "stalled-barrier", clock });
  const [first, late] = [barrier.register("north"), barrier.register("south")];
  const waits = first.wait();
  await clock.advance(4_999);
  expect(look("stalled-barrier", clock)).toEqual([]);
  await clock.advance(1);
  expect(look("stalled-barrier", clock)).toMatchObject([
    {
      id: "H11",
      failureModes: ["F11.1", "F11.2", "F11.4"],
      evidence: 'barrier "stalled-barrier" has kept 1 waiting for 5 s, and still misses south',
      facts: { waiting: 1, waitedMs: 5_000, missing: "south" },
    },
  ]);
  await Promise.all([late.wait(), waits]);
  expect(look("stalled-barrier", clock)).toEqual([]);
});

it("F11.2: H11 tells of more arrivals than there are parties", async () => {
  const clock = new VirtualClock();
  const { promise, resolve } = Promise.withResolvers<void>();
  const barrier = new Barrier(2, { name: "miscount", action: () => promise, clock });
  const round = [barrier.wait(), barrier.wait()];
  expect(look("miscount", clock)).toEqual([]);
  const extra = barrier.wait();
  expect(look("miscount", clock)).toMatchObject([{ id: "H11", facts: { extra: 1, parties: 2 } }]);
  resolve();
  await Promise.all(round);
  barrier.reset();
  await expect(extra).rejects.toThrow();
});

it("F11.1: H11 tells how many arrivals a latch still waits for", async () => {
  const clock = new VirtualClock();
  const latch = new Latch(3, { name: "stalled-latch", clock });
  latch.countDown();
  void latch.wait();
  await clock.advance(5_000);
  expect(look("stalled-latch", clock)).toMatchObject([
    { id: "H11", evidence: 'latch "stalled-latch" has kept 1 waiting for 5 s, and still misses 2 of 3' },
  ]);
});

it("F11.4: H11 tells of a latch that is used for a second round", () => {
  const clock = new VirtualClock();
  const latch = new Latch(2, { name: "reused-latch", clock });
  for (let party = 0; party < 2; party += 1) latch.countDown();
  expect(look("reused-latch", clock)).toEqual([]);
  for (let party = 0; party < 2; party += 1) latch.countDown();
  expect(look("reused-latch", clock)).toMatchObject([{ id: "H11", facts: { late: 2, count: 2 } }]);
});
