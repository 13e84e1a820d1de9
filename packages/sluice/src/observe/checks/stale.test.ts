import { expect, it } from "vitest";
import { singleFlight } from "../../share/single-flight.ts";
import { Snapshot } from "../../share/snapshot.ts";
import { VirtualClock } from "../../testing/virtual-clock.ts";
import { doctor, type DoctorOptions } from "../doctor.ts";
import type { Report } from "../report.ts";

const clock = new VirtualClock();

function look(options: DoctorOptions = {}): Report[] {
  return doctor({ clock, ...options }).filter(({ id }) => id === "H14");
}

it("F12.1: H14 tells of a flight that has been under way for too long", async () => {
  const { promise, resolve } = Promise.withResolvers<number>();
  const flights = singleFlight(() => promise, { name: "prices", clock });
  const load = flights.load("a");
  await clock.advance(29_999);
  expect(look()).toEqual([]);
  await clock.advance(1);
  expect(look()).toMatchObject([
    {
      failureModes: ["F12.1", "F12.3", "F13.5"],
      subject: { kind: "single-flight", name: "prices" },
      evidence: 'single-flight "prices" has a load under way for 30 s, whose result all who join it will get',
      facts: { ageMs: 30_000 },
    },
  ]);
  expect(look({ maxFlightMs: 60_000 })).toEqual([]);
  resolve(1);
  await load;
  expect(look()).toEqual([]);
});

it("F13.5: H14 tells of a snapshot that nobody has replaced for longer than is asked for", async () => {
  const rates = new Snapshot({ usd: 1 }, { name: "rates", clock });
  await clock.advance(600_000);
  expect(look()).toEqual([]);
  expect(look({ maxSnapshotMs: 600_000 })).toMatchObject([
    { subject: { kind: "snapshot", name: "rates" }, evidence: 'snapshot "rates" has had one value for 600 s' },
  ]);
  await rates.update((now) => ({ ...now, usd: 2 }));
  expect(look({ maxSnapshotMs: 600_000 })).toEqual([]);
});
