/** The driver beside the reference model, and the rules that every state must keep, under random operations. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { seededRandom, VirtualClock } from "sluice/testing";
import type { JobRecord } from "../job.ts";
import { MemoryStore } from "../memory/memory-store.ts";
import { isMove } from "../states.ts";
import type { OpenedStore, Facts } from "./case.ts";
import { pass, QUEUES, randomStep, Side, type Step } from "./walk.ts";

const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
const STEPS = 80;
const RETENTION = { succeededMs: 50, deadMs: 150 };

export const modelCases: Facts = Object.fromEntries(
  SEEDS.map((seed) => [
    `answers as the model does, and moves jobs only as the table says, under random operations (seed ${seed})`,
    { options: { retention: RETENTION }, fact: (opened: OpenedStore) => walk(opened, seed) },
  ]),
);

async function walk({ store, clock }: OpenedStore, seed: number): Promise<void> {
  const random = seededRandom(seed);
  const modelClock = new VirtualClock({ wallStartAt: await store.now() });
  const driver = new Side(store);
  const model = new Side(new MemoryStore({ clock: modelClock, retention: RETENTION }));
  const trace: string[] = [];
  try {
    let before: JobRecord[] = [];
    for (let count = 0; count < STEPS; count += 1) {
      const step = count % 10 === 9 ? pass(1) : randomStep(random, model);
      trace.push(step.title);
      if (step.passMs !== undefined) await Promise.all([clock.advance(step.passMs), modelClock.advance(step.passMs)]);
      deepEqual(await step.run(driver), await step.run(model));
      const after = await driver.records();
      deepEqual(after, await model.records());
      checkMoves(step, before, after);
      for (const queue of QUEUES) await checkQueue(queue, driver, model, after);
      before = after;
    }
    checkTokens(driver);
  } catch (error) {
    throw new Error(`seed ${seed}, after:\n${trace.join("\n")}\n${String(error)}`, { cause: error });
  }
}

/** One operation moves a job more than once only if that job was settled and claimed in it, which none does. */
function checkMoves(step: Step, before: readonly JobRecord[], after: readonly JobRecord[]): void {
  const states = new Map(after.map(({ id, state }) => [id, state]));
  for (const { id, state: from } of before) {
    const to = states.get(id);
    if (to === undefined || to === from) continue;
    ok(
      step.by.some((cause) => isMove(from, to, cause)),
      `job ${id} went from ${from} to ${to}`,
    );
  }
}

async function checkQueue(queue: string, driver: Side, model: Side, jobs: readonly JobRecord[]): Promise<void> {
  const now = await driver.store.now();
  const stats = await driver.store.stats(queue);
  deepEqual(stats, await model.store.stats(queue));
  const own = jobs.filter((job) => job.queue === queue);
  const ready = own.filter(({ state }) => state === "ready");
  equal(stats.ready, ready.length);
  equal(stats.oldestReadyMs, now - Math.min(now, ...ready.map(({ runAt }) => runAt)));
  const [nextAt, expected] = [await driver.store.nextAt(queue), await model.store.nextAt(queue)];
  equal(nextAt === undefined ? undefined : Math.max(now, nextAt), expected && Math.max(now, expected));
  if (ready.length > 0) ok(nextAt !== undefined && nextAt <= now);
  const keys = own
    .filter(({ state }) => state === "ready" || state === "scheduled")
    .flatMap((job) => job.uniqueKey ?? []);
  equal(new Set(keys).size, keys.length, `two jobs wait with one key of ${queue}`);
  for (const { attempts, maxAttempts } of own) ok(attempts >= 0 && attempts <= maxAttempts);
}

function checkTokens({ claims }: Side): void {
  const tokens = claims.map(({ token }) => token);
  deepEqual(
    tokens,
    [...new Set(tokens)].toSorted((a, b) => a - b),
  );
}
