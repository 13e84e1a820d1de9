import { expect, it } from "vitest";
import { Limiter } from "../../flow/limiter.ts";
import { shutdown } from "../../scope/shutdown.ts";
import { TaskGroup } from "../../scope/task-group.ts";
import { turn } from "../../testing/turn.ts";
import { VirtualClock } from "../../testing/virtual-clock.ts";
import { doctor } from "../doctor.ts";
import type { Report } from "../report.ts";

function look(name: string, clock: VirtualClock): Report[] {
  return doctor({ clock }).filter(({ subject }) => subject.name === name);
}

it("F05.3: H17 tells of children that run on after their group was cancelled", async () => {
  const clock = new VirtualClock();
  const { promise, resolve: end } = Promise.withResolvers<void>();
  const group = new TaskGroup({ name: "deaf-children", clock });
  const child = group.run(() => promise).catch(() => {});
  await clock.advance(60_000);
  expect(look("deaf-children", clock)).toEqual([]);
  group.abort(new Error("enough"));
  expect(look("deaf-children", clock)).toMatchObject([
    {
      id: "H17",
      failureModes: ["F05.3"],
      evidence: 'task-group "deaf-children" was cancelled, but has 1 still running, the oldest for 60 s',
      facts: { running: 1, runMs: 60_000 },
    },
  ]);
  end();
  await child;
  await group.join().catch(() => {});
  expect(look("deaf-children", clock)).toEqual([]);
});

it("F05.3: leaves a group alone whose children end when they are told to", async () => {
  const clock = new VirtualClock();
  const group = new TaskGroup({ name: "obedient-children", clock });
  const child = group.run(({ signal }) => new Promise((_, reject) => signal.addEventListener("abort", reject)));
  await clock.advance(60_000);
  group.abort();
  await child.catch(() => {});
  expect(look("obedient-children", clock)).toEqual([]);
});

it("D06: H17 tells of calls that gave their slot up and run on", async () => {
  const clock = new VirtualClock();
  const { promise, resolve: end } = Promise.withResolvers<void>();
  const limit = new Limiter(1, { name: "abandoning", clock });
  const call = limit.run(() => promise, { maxRunMs: 100, whenOverdue: "release-slot" }).catch(() => {});
  expect(look("abandoning", clock)).toEqual([]);
  await clock.advance(100);
  await call;
  expect(look("abandoning", clock)).toMatchObject([{ id: "H17", facts: { abandoned: 1 } }]);
  end();
  await turn();
  expect(look("abandoning", clock)).toEqual([]);
});

it("F01.3: H20 names who is still inside while a shutdown waits, and who was left when it is over", async () => {
  const clock = new VirtualClock();
  const stop = shutdown({ name: "stuck-shutdown", timeoutMs: 60_000, clock });
  stop.add("feed", { stop: () => {} });
  const orders = stop.add("orders", new Limiter(1, { clock }));
  void orders.run(() => new Promise<never>(() => {}));
  expect(look("stuck-shutdown", clock)).toEqual([]);
  const over = stop.stop();
  await turn();
  expect(look("stuck-shutdown", clock)).toEqual([]);
  await clock.advance(5_000);
  expect(look("stuck-shutdown", clock)).toMatchObject([
    {
      id: "H20",
      failureModes: ["F01.3", "F06.4"],
      evidence: 'shutdown "stuck-shutdown" waits for orders, for 5 s',
      facts: { inside: "orders", idleMs: 5_000 },
    },
  ]);
  await clock.advance(60_000);
  expect((await over).clean).toBe(false);
  expect(look("stuck-shutdown", clock)).toMatchObject([
    { id: "H20", evidence: 'shutdown "stuck-shutdown" is over, and left inside: orders', facts: { phase: "over" } },
  ]);
});

it("F01.3: leaves a shutdown alone that gets on, and one that is over in time", async () => {
  const clock = new VirtualClock();
  const stop = shutdown({ name: "clean-shutdown", timeoutMs: 60_000, clock });
  const ends = [1, 2, 3].map((part) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    void stop.add(`part ${part}`, new Limiter(1, { clock })).run(() => promise);
    return resolve;
  });
  const over = stop.stop();
  for (const end of ends) {
    await turn();
    expect(look("clean-shutdown", clock)).toEqual([]);
    await clock.advance(4_000);
    end();
  }
  expect((await over).clean).toBe(true);
  await clock.advance(60_000);
  expect(look("clean-shutdown", clock)).toEqual([]);
});
