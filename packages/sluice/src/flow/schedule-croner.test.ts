// With croner as the calendar, as the doc of `Calendar` says it is plugged in.
import { Cron } from "croner";
import { expect, it } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { schedule } from "./schedule.ts";
import type { Calendar } from "./schedule-options.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

function croner(pattern: string, timezone: string): Calendar {
  const cron = new Cron(pattern, { timezone });
  return { next: (afterMs) => cron.nextRun(new Date(afterMs))?.getTime() };
}

/** When the runs began, from the instant `from` on, for so long. */
async function runsOf(calendar: Calendar, from: string, forMs: number): Promise<string[]> {
  const clock = new VirtualClock({ wallStartAt: Date.parse(from) });
  const runs: string[] = [];
  await using _ = schedule(calendar, () => void runs.push(new Date(clock.wallNow()).toISOString()), { clock });
  await clock.advance(forMs);
  return runs;
}

it("C137: runs every half hour of a local day of 25 hours", async () => {
  const runs = await runsOf(croner("*/30 * * * *", "Australia/Melbourne"), "2024-04-06T12:59:59.999Z", 25 * HOUR_MS);
  expect(runs).toHaveLength(50);
});

it.each([
  ["0 0 * * *", "America/Sao_Paulo", "2014-10-17T12:00:00Z", 4, 4],
  ["0 0 * * 0", "America/Santiago", "2022-09-01T12:00:00Z", 14, 2],
])(
  "C139: runs once a day that matches, also where there is no midnight: %s in %s",
  async (pattern, zone, from, days, count) => {
    const runs = await runsOf(croner(pattern, zone), from, days * DAY_MS);
    expect(runs).toHaveLength(count);
    expect(new Set(runs.map((at) => at.slice(0, 10))).size).toBe(count);
  },
);

it.each([
  ["0 0 30 * *", "2027-03-30T00:00:00.000Z"],
  ["0 0 31 * *", "2027-03-31T00:00:00.000Z"],
  ["0 0 1 * *", "2027-02-01T00:00:00.000Z"],
  ["0 0 29 2 *", "2028-02-29T00:00:00.000Z"],
])("C146: finds the next run of %s from the 31st of January on", async (pattern, expected) => {
  const from = "2027-01-31T12:00:00Z";
  expect(await runsOf(croner(pattern, "UTC"), from, Date.parse(expected) - Date.parse(from))).toEqual([expected]);
});
