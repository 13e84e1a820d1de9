// A report on the last day of each month, and a sweep every ten minutes. In virtual time, to be seen at once.
import { schedule, type Calendar } from "sluice";
import { VirtualClock } from "sluice/testing";

const clock = new VirtualClock({ wallStartAt: Date.UTC(2028, 0, 30) });
const today = (): string => new Date(clock.wallNow()).toISOString().slice(0, 16);

// Whatever has `next` is a calendar: this one, or croner's `{ next: (ms) => cron.nextRun(new Date(ms))?.getTime() }`.
const monthEnds: Calendar = {
  next(afterMs) {
    const after = new Date(afterMs);
    const [year, month] = [after.getUTCFullYear(), after.getUTCMonth()];
    const ends = [month + 1, month + 2].map((next) => Date.UTC(year, next, 0, 18)); // day 0 is the last of the month before
    return ends.find((at) => at > afterMs);
  },
};

const report = schedule(monthEnds, () => console.log(`report on ${today()}`), { clock, missed: "once" });

let sweeps = 0;
const sweep = schedule(
  { everyMs: 600_000 },
  () => {
    sweeps += 1;
    if (sweeps === 2) throw new Error("disk is busy");
  },
  { clock, onError: (error) => console.log(`sweep failed: ${String(error)}`) },
);

await clock.advance(60 * 86_400_000);
await Promise.all([report.stop(), sweep.stop()]);
console.log(`${sweeps} sweeps, ${sweep.stats().failed} failed`);

// Prints:
// sweep failed: Error: disk is busy
// report on 2028-01-31T18:00
// report on 2028-02-29T18:00
// 8640 sweeps, 1 failed
