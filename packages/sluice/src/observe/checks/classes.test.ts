import { expect, it } from "vitest";
import { RwLock } from "../../sync/rw-lock.ts";
import { VirtualClock } from "../../testing/virtual-clock.ts";
import { doctor } from "../doctor.ts";
import type { Report } from "../report.ts";

function reports(id: string, name: string, clock: VirtualClock): Report[] {
  return doctor({ clock }).filter((each) => each.id === id && each.subject.name === name);
}

/** Reads that overlap, so that somebody always reads; ends with a look each second. */
async function readOn(lock: RwLock, clock: VirtualClock, name: string, seconds: number): Promise<Report[]> {
  let found: Report[] = [];
  let before = lock.tryRead();
  for (let second = 0; second < seconds; second += 1) {
    const next = lock.tryRead();
    before?.release();
    before = next;
    found = reports("H08", name, clock);
    await clock.advance(1_000);
  }
  before?.release();
  return found;
}

it("F09.1: H08 tells of a writer that waits while readers are let in, as they are where these are preferred", async () => {
  const clock = new VirtualClock();
  const lock = new RwLock({ name: "starved-writer", prefer: "readers", clock });
  using _ = await lock.read();
  void lock.write();
  expect(await readOn(lock, clock, "starved-writer", 5)).toEqual([]);
  expect(await readOn(lock, clock, "starved-writer", 2)).toMatchObject([
    {
      failureModes: ["F09.1", "F09.2"],
      subject: { kind: "rw-lock" },
      facts: { side: "writers", waiting: 1, waitedMs: 6_000 },
    },
  ]);
});

it("F09.1: leaves a fair lock alone, in which a writer waits only for readers that were there", async () => {
  const clock = new VirtualClock();
  const lock = new RwLock({ name: "fair-writer", clock });
  using _ = await lock.read();
  void lock.write();
  expect(await readOn(lock, clock, "fair-writer", 10)).toEqual([]);
});

it("F09.2: H08 tells of readers that wait while writers are let in, as they are where these are preferred", async () => {
  const clock = new VirtualClock();
  const lock = new RwLock({ name: "starved-reader", prefer: "writers", clock });
  let writer = await lock.write();
  void lock.read();
  for (let second = 0; second < 5; second += 1) {
    const next = lock.write();
    expect(reports("H08", "starved-reader", clock)).toEqual([]);
    writer.release();
    writer = await next;
    await clock.advance(1_000);
  }
  expect(reports("H08", "starved-reader", clock)).toMatchObject([
    { evidence: 'rw-lock "starved-reader" has let in 5 writers and none of the readers that wait, for 5 s' },
  ]);
  writer.release();
  expect(reports("H08", "starved-reader", clock)).toEqual([]);
});

it("F09.4: H19 tells the share of reads where it is too small to pay", () => {
  const clock = new VirtualClock();
  const lock = new RwLock({ name: "misfit", clock });
  for (let times = 0; times < 500; times += 1) {
    lock.tryRead()?.release();
    expect(reports("H19", "misfit", clock)).toEqual([]); // too few to tell
    lock.tryWrite()?.release();
  }
  expect(reports("H19", "misfit", clock)).toMatchObject([
    {
      failureModes: ["F09.4"],
      evidence: 'rw-lock "misfit" was taken 500 times to write and 500 times to read',
      facts: { reads: 500, writes: 500, readShare: 0.5 },
    },
  ]);
});

it("F09.4: leaves a lock alone that is mostly read", () => {
  const clock = new VirtualClock();
  const lock = new RwLock({ name: "fit", clock });
  for (let times = 0; times < 1_000; times += 1) lock.tryRead()?.release();
  for (let times = 0; times < 100; times += 1) lock.tryWrite()?.release();
  expect(reports("H19", "fit", clock)).toEqual([]);
});
