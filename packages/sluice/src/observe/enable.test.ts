import { expect, it } from "vitest";
import { notice, probe } from "../internal/probe.ts";
import { Semaphore } from "../sync/semaphore.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { doctor } from "./doctor.ts";
import { activity, currentLedger, enable } from "./enable.ts";

it("watches from enable to disable, and leaves nothing of itself behind", async () => {
  const clock = new VirtualClock();
  const watch = enable({ clock, stallMs: 10 });
  const sem = new Semaphore(1, { clock });
  await sem.acquire();
  void sem.acquire();
  expect([probe !== undefined, notice !== undefined, clock.timers]).toEqual([true, true, 1]);
  watch.disable();
  watch.disable();
  expect([probe, notice, currentLedger(), clock.timers]).toEqual([undefined, undefined, undefined, 0]);
});

it("refuses a second watch, and takes it when the first is over", () => {
  const first = enable();
  expect(() => enable()).toThrow("watching is enabled already");
  first.disable();
  using second = enable();
  first.disable(); // no harm to the other
  expect(probe).toBeDefined();
  expect(second).not.toBe(first);
});

it("refuses a stallMs that is none, and stays off", () => {
  expect(() => enable({ stallMs: -1 })).toThrow("stallMs must be >= 0, got -1");
  expect(probe).toBeUndefined();
});

it("knows nothing of what was taken before, and takes it back without a word", async () => {
  const clock = new VirtualClock();
  const sem = new Semaphore(1, { name: "before", clock });
  const before = await sem.acquire();
  const waiter = sem.acquire();
  using _ = enable({ clock });
  await clock.advance(60_000);
  expect(doctor({ clock, maxWaitMs: Infinity })).toEqual([]);
  before.release();
  (await waiter).release();
  expect(await sem.run(() => "all the same")).toBe("all the same");
});

it("calls the function of an activity, watched or not, with what it returns", () => {
  expect(activity(() => 1)).toBe(1);
  using _ = enable();
  expect(activity(() => 2)).toBe(2);
  expect(() =>
    activity(() => {
      throw new Error("its own");
    }),
  ).toThrow("its own");
});

it.each([
  [{ maxHeldMs: -1 }, "maxHeldMs must be >= 0, got -1"],
  [{ maxWaitMs: Number.NaN }, "maxWaitMs must be >= 0, got NaN"],
  [{ stallMs: "5" as never }, "stallMs must be a number, got string"],
  [{ maxLine: 1.5 }, "maxLine must be an integer >= 0 or Infinity, got 1.5"],
  [{ maxWidth: 0 }, "maxWidth must be an integer >= 1 or Infinity, got 0"],
])("the doctor refuses the options %j", (options, why) => {
  expect(() => doctor(options)).toThrow(why);
});

it("reports by id, and nothing of what cannot tell its stats", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const sem = new Semaphore(1, { name: "two-faults", clock });
  await sem.acquire();
  void sem.acquire();
  await clock.advance(60_000);
  const broken = new Semaphore(1, { name: "broken" });
  Object.defineProperty(broken, "stats", {
    value: () => {
      throw new Error("broken");
    },
  });
  const found = doctor({ clock }).filter(({ subject }) => subject.name === "two-faults" || subject.name === "broken");
  expect(found.map(({ id }) => id)).toEqual(["H01", "H07"]);
});
