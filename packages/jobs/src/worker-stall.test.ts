import * as fc from "fast-check";
import { VirtualClock } from "sluice/testing";
import { expect, it } from "vitest";
import { MemoryStore } from "./memory/memory-store.ts";
import { clock, Desk, elsewhere, gone, hang, LEASE_MS, QUEUE, stageWith, start, store, add } from "./worker.stage.ts";

interface Plan {
  /** Of the second worker, behind the first. */
  readonly offsetMs: number;
  readonly concurrency: number;
  /** How long the loop turns, how long it is then blocked, and whether what blocked it has added a job. */
  readonly stalls: readonly (readonly [beforeMs: number, ms: number, adds: boolean])[];
}

it("F03.1: of two workers whose event loop was blocked beyond the lease none takes the other's jobs", () => {
  const ms = fc.integer({ min: 0, max: 3 * LEASE_MS });
  const stalls = fc.array(fc.tuple(ms, ms, fc.boolean()), { minLength: 1, maxLength: 2 });
  const plan = fc.record<Plan>({ offsetMs: ms, concurrency: fc.integer({ min: 1, max: 2 }), stalls });
  const byTimer: Plan = { offsetMs: 300, concurrency: 1, stalls: [[690, LEASE_MS, false]] };
  const byWake: Plan = { offsetMs: 300, concurrency: 2, stalls: [[100, LEASE_MS, true]] };
  const found = [byTimer, byWake].map((each): [Plan] => [each]);
  return fc.assert(fc.asyncProperty(plan, playStalls), { numRuns: 200, examples: found });
});

async function playStalls({ offsetMs, concurrency, stalls }: Plan): Promise<void> {
  const own = new VirtualClock();
  stageWith(new MemoryStore({ clock: own }), own);
  const desks = [new Desk(), new Desk()];
  const workers = [];
  for (const desk of desks) {
    await add("runs long");
    workers.push(start(desk.handler, { concurrency }));
    await clock.advance(offsetMs);
  }
  for (const [beforeMs, stallMs, adds] of stalls) {
    await clock.advance(beforeMs);
    clock.stall(stallMs);
    if (adds) await store.add([{ queue: QUEUE, payload: "later", delayMs: 1e9 }]);
    await clock.advance(2 * LEASE_MS);
  }
  for (const end of desks.flatMap(({ ends }) => ends)) end.resolve(undefined);
  await clock.advance(0);
  const jobs = await store.list({ states: ["succeeded"] });
  expect(jobs.map(({ attempts, crashes }) => [attempts, crashes])).toEqual([
    [1, 0],
    [1, 0],
  ]);
  const stopped = Promise.all(workers.map((worker) => worker.stop()));
  await clock.advance(0);
  await stopped;
}

it("C182: takes back what a dead process left though the event loop is blocked again and again", async () => {
  await add(1);
  start(() => hang(), {}, gone());
  await clock.advance(0);
  const at: number[] = [];
  start(() => void at.push(clock.now()), {}, elsewhere());
  for (let stall = 0; stall < 6; stall += 1) {
    await clock.advance(1);
    clock.stall(LEASE_MS);
  }
  await clock.advance(0);
  expect(at.length).toBe(1);
});
