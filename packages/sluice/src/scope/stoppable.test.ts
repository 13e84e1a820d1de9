import { expect, it } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { shutdown } from "./shutdown.ts";
import type { StopContext } from "./stoppable.ts";

it("hands its time to what has a stopWithin, and to functions: that of its own, of its phase, of all, the least of them", async () => {
  const clock = new VirtualClock();
  const stopping = shutdown({ clock, timeoutMs: 800, phaseMs: { drain: 300 } });
  const told: [string, number, boolean][] = [];
  const tell =
    (name: string) =>
    ({ timeoutMs, signal }: StopContext): void =>
      void told.push([name, timeoutMs, signal.aborted]);
  stopping.add("worker", { stopWithin: tell("worker"), stop: tell("stop") });
  stopping.add("sink", tell("sink"), { phase: "drain" });
  stopping.add("hurried", tell("hurried"), { phase: "drain", timeoutMs: 50 });
  stopping.add("database", tell("database"));
  expect(await stopping.stop()).toMatchObject({ clean: true });
  expect(told).toEqual([
    ["worker", 400, false],
    ["sink", 300, false],
    ["hurried", 50, false],
    ["database", 800, false],
  ]);
});

it("calls stopWithin on what has it, and stop with nothing: an argument might mean haste", async () => {
  const stopping = shutdown();
  const self: unknown[] = [];
  const worker = {
    stopWithin(): void {
      self.push(this);
    },
  };
  const schedule = { stop: (...given: unknown[]): unknown => self.push(given) };
  stopping.add("worker", worker);
  stopping.add("schedule", schedule);
  expect((await stopping.stop()).targets).toMatchObject([{ phase: "intake" }, { phase: "intake" }]);
  expect(self).toEqual([worker, []]);
});
