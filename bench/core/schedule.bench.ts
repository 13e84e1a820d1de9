// Runs every millisecond of virtual time, and what a schedule keeps. Against the floor: `setInterval`, on the same virtual
// clock where time passes, which knows neither overlaps nor missed runs, and ends the process at the first that throws.
import { schedule } from "sluice";
import { VirtualClock } from "sluice/testing";
import { compare, weigh } from "../harness.ts";

const nothing = (): void => {};

await compare("schedule", 20_000, {
  async sluice(ops) {
    const clock = new VirtualClock();
    const plan = schedule({ everyMs: 1 }, nothing, { clock });
    await clock.advance(ops);
    await plan.stop();
  },
  async floor(ops) {
    const clock = new VirtualClock();
    const globals = clock.installGlobals();
    const interval = setInterval(nothing, 1);
    await clock.advance(ops);
    clearInterval(interval);
    globals.restore();
  },
});

await weigh("schedule-memory", 10_000, {
  sluice: (count) =>
    Array.from({ length: count }, () => schedule({ everyMs: 3_600_000 }, nothing, { background: true })),
  floor: (count) => Array.from({ length: count }, () => setInterval(nothing, 3_600_000).unref()),
});
