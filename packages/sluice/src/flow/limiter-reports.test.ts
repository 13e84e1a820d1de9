// What users of the peers report, and what goes wrong with pools wherever they are.
import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Limiter } from "./limiter.ts";

it("F02.1: work that is slow fills its own limiter and holds up nobody in another", async () => {
  const clock = new VirtualClock();
  const [shared, slow, fast] = [2, 2, 2].map((slots) => new Limiter(slots, { clock })) as [Limiter, Limiter, Limiter];
  const finished: string[] = [];
  const report = (limit: Limiter, name: string, ms: number): unknown =>
    limit.run(() => sleepOn(clock, ms)).then(() => finished.push(`${name} at ${clock.now()}`));
  for (const limit of [shared, slow])
    for (let call = 0; call < 2; call += 1) void limit.run(() => sleepOn(clock, 1_000));
  report(shared, "shared", 1);
  report(fast, "fast", 1);
  await clock.advance(2_000);
  expect(finished).toEqual(["fast at 1", "shared at 1001"]);
});

it("J08: a limit at that of what it protects turns nobody away there, and one above it does", async () => {
  for (const [slots, refused] of [
    [5, 0],
    [6, 4],
  ] as const) {
    const connections = new Limiter(5, { capacity: 0 });
    const limit = new Limiter(slots);
    const calls = Array.from({ length: 24 }, () => limit.run(() => connections.run(() => turn())));
    const outcomes = await Promise.allSettled(calls);
    expect(outcomes.filter(({ status }) => status === "rejected").length > 0).toBe(refused > 0);
    expect(connections.stats().rejected > 0).toBe(refused > 0);
  }
});

it("settles a call with an aborted signal also when there is no room for it", async () => {
  const limit = new Limiter(1, { capacity: 0 });
  const busy = limit.run(() => turn());
  await expect(limit.run(() => {}, { signal: AbortSignal.abort("before") })).rejects.toBe("before");
  expect(limit.stats().rejected).toBe(0);
  await busy;
});

it("who waits for it to be idle and then runs is in nobody's way, nor held up by who queues", async () => {
  const limit = new Limiter(1);
  const log: number[] = [];
  const patient = async (id: number): Promise<void> => {
    await limit.drain();
    await limit.run(() => void log.push(id));
  };
  const busy = limit.run(() => turn());
  await Promise.all([busy, patient(1), patient(2), limit.run(() => void log.push(0)), limit.empty()]);
  expect(log).toEqual([0, 1, 2]);
});

it("a call that expires gives back what it has in every state: in line, at the grant, at work", async () => {
  const clock = new VirtualClock();
  const limit = new Limiter(1, { clock });
  const busy = limit.run(() => sleepOn(clock, 50));
  const outcomes = Promise.allSettled([
    limit.run(() => {}, { timeoutMs: 49 }), // in line
    limit.run(() => {}, { timeoutMs: 50 }), // at the grant
    limit.run(() => sleepOn(clock, 20), { maxRunMs: 10 }), // at work
    limit.run(() => sleepOn(clock, 20), { maxRunMs: 10, whenOverdue: "release-slot" }),
  ]);
  await clock.advance(200);
  await Promise.all([busy, outcomes]);
  expect(limit.stats()).toMatchObject({ running: 0, taken: 0, waiting: 0, overdue: 2, abandoned: 0 });
  expect([await limit.run(() => "free"), clock.timers]).toEqual(["free", 0]);
});

it("a stream of urgent calls lets a patient one through after so many steps of aging", async () => {
  const clock = new VirtualClock();
  const limit = new Limiter(1, { agingMs: 100, clock });
  let startedAt = Number.NaN;
  const urgent = (): Promise<void> => limit.run(() => sleepOn(clock, 10), { priority: 5 });
  void urgent();
  const patient = limit.run(() => void (startedAt = clock.now()));
  for (let step = 0; step < 200; step += 1) {
    void urgent();
    await clock.advance(10);
  }
  await patient;
  expect(startedAt).toBe(520); // 5 steps, and who was ahead of it by then
});

function sleepOn(clock: VirtualClock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.setTimer(ms, { onTimer: resolve }));
}
