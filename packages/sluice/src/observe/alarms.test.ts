import { expect, it } from "vitest";
import { register, type Stats } from "../internal/names.ts";
import { Semaphore } from "../sync/semaphore.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { type AlarmRule, watchAlarms } from "./alarms.ts";
import { onEvent } from "./events.ts";

/** What is told while `play` runs, as `raised NAME VALUE`. */
async function told(play: () => Promise<void>): Promise<string[]> {
  const log: string[] = [];
  const stop = onEvent(({ name, subject, detail }) => {
    if (name !== "raised" && name !== "cleared") return;
    log.push(`${name} ${subject.name} ${(detail as { value: number }).value}`);
  });
  await play();
  await Promise.resolve();
  stop();
  return log;
}

class Thing {
  stats: () => Stats;

  constructor(name: string, stats: () => Stats, dependency?: string) {
    this.stats = stats;
    register("thing", { name, dependency }, this);
  }
}

it("F01.5: raises an alarm on the age of the oldest once, and clears it when it has fallen well below", async () => {
  const clock = new VirtualClock();
  const sem = new Semaphore(1, { name: "alarm-age", clock });
  const permit = await sem.acquire();
  const rule = { measure: "age", above: 5_000, name: "alarm-age" } as const;
  using watch = watchAlarms([rule], { clock });
  const log = await told(async () => {
    const waiter = sem.acquire();
    await clock.advance(5_000);
    expect(watch.raised).toEqual([]);
    await clock.advance(3_000);
    expect(watch.raised).toEqual([
      { rule: { ...rule, clearAt: 4_000 }, subject: { kind: "semaphore", name: "alarm-age" }, value: 8_000 },
    ]);
    permit.release();
    (await waiter).release();
    await clock.advance(3_000);
    expect(watch.raised).toEqual([]);
  });
  expect(log).toEqual(["raised alarm-age 6000", "cleared alarm-age 0"]);
});

it("does not flutter between the two thresholds", async () => {
  const clock = new VirtualClock();
  let oldestAgeMs = 0;
  const thing = new Thing("alarm-flutter", () => ({ oldestAgeMs }));
  using _ = watchAlarms([{ measure: "age", above: 100, clearAt: 50, name: "alarm-flutter" }], { clock, everyMs: 1 });
  const log = await told(async () => {
    for (const age of [100, 101, 99, 51, 102, 50, 51, 100, 101]) {
      oldestAgeMs = age;
      await clock.advance(1);
    }
  });
  expect(log).toEqual(["raised alarm-flutter 101", "cleared alarm-flutter 50", "raised alarm-flutter 101"]);
  expect(thing.stats()).toEqual({ oldestAgeMs: 101 });
});

it("takes the share of calls turned away since it was last told, and none of too few calls", async () => {
  const clock = new VirtualClock();
  const counts = { granted: 1_000, rejected: 500 };
  const thing = new Thing("alarm-share", () => ({ ...counts }));
  using watch = watchAlarms([{ measure: "rejected-share", above: 0.5, name: "alarm-share" }], { clock, minCalls: 10 });
  const log = await told(async () => {
    for (const [granted, rejected] of [
      [0, 9],
      [0, 1],
      [5, 4],
      [10, 0],
    ] as const) {
      counts.granted += granted;
      counts.rejected += rejected;
      watch.look();
    }
  });
  expect(log).toEqual(["raised alarm-share 1", `cleared alarm-share ${4 / 19}`]);
  expect(thing.stats()).toEqual(counts);
});

it("looks only at what a rule names, by name or by dependency", async () => {
  const clock = new VirtualClock();
  const kept = [
    new Thing("alarm-one", () => ({ oldestAgeMs: 10 }), "mail"),
    new Thing("alarm-two", () => ({ oldestAgeMs: 10 }), "sms"),
  ];
  const raisedBy = (rule: Partial<AlarmRule>): (string | undefined)[] => {
    using watch = watchAlarms([{ measure: "age", above: 5, ...rule }], { clock });
    return watch.raised
      .map(({ subject }) => subject.name)
      .filter((name) => name === "alarm-one" || name === "alarm-two");
  };
  expect(raisedBy({})).toEqual(["alarm-one", "alarm-two"]);
  expect(raisedBy({ name: "alarm-two" })).toEqual(["alarm-two"]);
  expect(raisedBy({ dependency: "mail" })).toEqual(["alarm-one"]);
  expect(raisedBy({ name: "alarm-two", dependency: "mail" })).toEqual([]);
  expect(kept).toHaveLength(2);
});

it("lets the trouble of one thing's stats keep no alarm from the others, and clears that of what tells nothing", () => {
  let isBroken = false;
  const thing = new Thing("alarm-broken", () => {
    if (isBroken) throw new Error("broken");
    return { oldestAgeMs: 10 };
  });
  const other = new Thing("alarm-whole", () => ({ oldestAgeMs: 10 }));
  using watch = watchAlarms([{ measure: "age", above: 5 }], { clock: new VirtualClock() });
  const names = (): (string | undefined)[] =>
    watch.raised.map(({ subject }) => subject.name).filter((name) => name === "alarm-broken" || name === "alarm-whole");
  expect(names()).toEqual(["alarm-broken", "alarm-whole"]);
  isBroken = true;
  watch.look();
  expect(names()).toEqual(["alarm-whole"]);
  expect([thing, other]).toHaveLength(2);
});

function watchOne(rule: object): unknown {
  return watchAlarms([rule as AlarmRule], { clock: new VirtualClock() });
}

it("refuses a rule that could never be right", () => {
  expect(() => watchAlarms({} as never)).toThrow("rules must be a list, got object");
  expect(() => watchOne({ measure: "depth", above: 1 })).toThrow("measure must be one of age, held, rejected-share");
  expect(() => watchOne({ measure: "age", above: Number.NaN })).toThrow("above must be finite and >= 0, got NaN");
  expect(() => watchOne({ measure: "rejected-share", above: 50 })).toThrow("above must be <= 1, got 50");
  expect(() => watchOne({ measure: "age", above: 5, clearAt: 6 })).toThrow(
    "clearAt must be <= above, which is 5, got 6",
  );
  expect(() => watchOne({ measure: "age", above: 5, name: 7 })).toThrow("name must be a string, got number");
  expect(() => watchOne({ measure: "age", above: 5, dependency: null })).toThrow(
    "dependency must be a string, got null",
  );
});

it("stops once and for all, and leaves no timer", async () => {
  const clock = new VirtualClock();
  const watch = watchAlarms([], { clock });
  expect(clock.timers).toBe(1);
  await clock.advance(5_000);
  expect(clock.timers).toBe(1);
  watch.stop();
  watch.stop();
  expect(clock.timers).toBe(0);
});

it.each([
  [{ measure: "depth", above: 1 }, "measure must be one of age, held, rejected-share, got depth"],
  [{ measure: "age", above: -1 }, "above must be finite and >= 0, got -1"],
  [{ measure: "age", above: 1, clearAt: 2 }, "clearAt must be <= above, which is 1, got 2"],
] as const)("refuses the rule %j", (rule, why) => {
  const clock = new VirtualClock();
  expect(() => watchAlarms([rule as AlarmRule], { clock })).toThrow(why);
  expect(clock.timers).toBe(0);
});
