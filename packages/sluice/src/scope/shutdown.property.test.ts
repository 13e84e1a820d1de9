import * as fc from "fast-check";
import { expect, it } from "vitest";
import { sleep } from "../clock/sleep.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { shutdown, type ShutdownReport } from "./shutdown.ts";
import type { ShutdownPhase } from "./stoppable.ts";

const PHASES: readonly ShutdownPhase[] = ["intake", "drain", "close"];

interface Plan {
  readonly phase: ShutdownPhase;
  readonly does: "stop" | "wait" | "hang" | "throw" | "reject";
  readonly ms: number;
  readonly timeoutMs: number | undefined;
}

it("is over in time, tells each once and phase after phase, and leaves no timer, whatever they do", () => {
  const plan = fc.record({
    phase: fc.constantFrom(...PHASES),
    does: fc.constantFrom<Plan["does"]>("stop", "wait", "hang", "throw", "reject"),
    ms: fc.integer({ min: 0, max: 60 }),
    timeoutMs: fc.constantFrom(undefined, 0, 10, 1_000),
  });
  const hasteAtMs = fc.constantFrom(undefined, 0, 25);
  return fc.assert(fc.asyncProperty(fc.array(plan, { maxLength: 8 }), hasteAtMs, play), { numRuns: 500 });
});

async function play(plans: readonly Plan[], hasteAtMs: number | undefined): Promise<void> {
  const clock = new VirtualClock();
  const stopping = shutdown({ timeoutMs: 100, clock });
  const told: number[] = [];
  for (const [id, { phase, does, ms, timeoutMs }] of plans.entries()) {
    const stop = (): unknown => {
      told.push(id);
      if (does === "throw") throw new Error("thrown");
      if (does === "hang") return new Promise(() => {});
      if (does === "stop") return undefined;
      return sleep(ms, { clock }).then(() => (does === "reject" ? Promise.reject(new Error("rejected")) : undefined));
    };
    stopping.add(String(id), stop, { phase, timeoutMs });
  }
  let report: ShutdownReport | undefined;
  void stopping.stop().then((found) => (report = found));
  if (hasteAtMs !== undefined) {
    await clock.advance(hasteAtMs);
    void stopping.stopNow();
  }
  await clock.advance(100 - (hasteAtMs ?? 0));
  const { clean, tookMs, targets } = report as unknown as ShutdownReport;
  expect(tookMs).toBeLessThanOrEqual(hasteAtMs ?? 100);
  expect(targets.map(({ name }) => Number(name))).toEqual(told);
  const of = (phase: ShutdownPhase): number[] => [...plans.keys()].filter((id) => plans[id]?.phase === phase);
  expect(told).toEqual([...of("intake"), ...of("drain"), ...of("close").toReversed()]);
  expect(clean).toBe(targets.every(({ outcome }) => outcome === "stopped"));
  for (const { name, outcome, tookMs: own } of targets) {
    const { does, ms, timeoutMs = Infinity } = plans[Number(name)] as Plan;
    expect(own).toBeLessThanOrEqual(Math.min(timeoutMs, 100));
    const possible = {
      stop: ["stopped"],
      throw: ["failed"],
      hang: ["inside"],
      wait: ["stopped", "inside"],
      reject: ["failed", "inside"],
    };
    expect(possible[does]).toContain(outcome);
    if ((does === "wait" || does === "reject") && outcome !== "inside") expect(own).toBe(ms);
  }
  await clock.advance(100); // what still waits by itself
  expect(clock.timers).toBe(0);
}
