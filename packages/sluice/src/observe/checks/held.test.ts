import { setImmediate as turn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { Limiter } from "../../flow/limiter.ts";
import { Pool } from "../../flow/pool.ts";
import { Condition } from "../../sync/condition.ts";
import { Mutex } from "../../sync/mutex.ts";
import type { Permit } from "../../sync/permit.ts";
import { RwLock } from "../../sync/rw-lock.ts";
import { Semaphore } from "../../sync/semaphore.ts";
import { VirtualClock } from "../../testing/virtual-clock.ts";
import { watchAlarms } from "../alarms.ts";
import { doctor } from "../doctor.ts";
import { enable } from "../enable.ts";
import type { Report } from "../report.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** Reports of this id about what has this name. */
function reports(id: string, name: string, clock: VirtualClock): Report[] {
  return doctor({ clock }).filter((each) => each.id === id && each.subject.name === name);
}

/** Called by nobody who releases anything, so that it is on the stack of its own wait only. */
function askFor(sem: Semaphore): Promise<Permit> {
  return sem.acquire();
}

async function takeAndForget(sem: Semaphore): Promise<void> {
  await sem.acquire();
}

it("F10.1: H01 tells of a permit that is held too long, with the stack that took it", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const sem = new Semaphore(2, { name: "held-long", clock });
  const permit = await sem.acquire({ weight: 2 });
  await clock.advance(29_999);
  expect(reports("H01", "held-long", clock)).toEqual([]);
  await clock.advance(1);
  const [report] = reports("H01", "held-long", clock);
  expect(report).toMatchObject({
    failureModes: ["F10.1", "F10.5"],
    subject: { kind: "semaphore", name: "held-long" },
    evidence: 'semaphore "held-long" has not got back what it gave out 30 s ago',
    facts: { heldMs: 30_000, collected: false, weight: 2 },
  });
  const takenAt = String(report?.facts["takenAt"]);
  expect(takenAt.split("\n")[0]).toContain("held.test.ts");
  expect(takenAt).not.toContain("permit-pool.ts");
  permit.release();
  expect(reports("H01", "held-long", clock)).toEqual([]);
});

it("tells of who has waited for a permit since it was granted, with the stack that asked for it", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const sem = new Semaphore(1, { name: "held-after-wait", clock });
  const first = await sem.acquire();
  const second = askFor(sem);
  await clock.advance(30_000);
  first.release();
  const permit = await second;
  expect(reports("H01", "held-after-wait", clock)).toEqual([]);
  await clock.advance(30_000);
  const takenAt = String(reports("H01", "held-after-wait", clock)[0]?.facts["takenAt"]);
  expect(takenAt.split("\n")[0]).toContain("askFor");
  permit.release();
});

it("keeps no stacks when told so, and finds what is held all the same", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock, stacks: false });
  const sem = new Semaphore(1, { name: "held-no-stack", clock });
  const permit = await sem.acquire();
  await clock.advance(30_000);
  expect(reports("H01", "held-no-stack", clock)[0]?.facts["takenAt"]).toBe("");
  permit.release();
});

it("knows each guard of a readers-writer lock, also after a downgrade", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const lock = new RwLock({ name: "held-rw", clock });
  const writer = await lock.write();
  await clock.advance(30_000);
  expect(reports("H01", "held-rw", clock)).toHaveLength(1);
  const reader = writer.downgrade();
  expect(reports("H01", "held-rw", clock)).toHaveLength(0);
  await clock.advance(30_000);
  expect(reports("H01", "held-rw", clock)).toHaveLength(1);
  reader.release();
  expect(reports("H01", "held-rw", clock)).toHaveLength(0);
});

it("F10.1: H01 tells of a permit that was collected and not given back, and H02 of who waits for it in vain", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const sem = new Semaphore(1, { name: "collected", clock });
  await takeAndForget(sem);
  void sem.acquire();
  void sem.acquire();
  await clock.advance(10);
  expect(reports("H02", "collected", clock)).toEqual([]);
  for (let tries = 0; reports("H01", "collected", clock).length === 0 && tries < 100; tries += 1) {
    await turn();
    collectGarbage();
  }
  const [lost] = reports("H01", "collected", clock);
  expect(lost?.facts).toMatchObject({ heldMs: 10, collected: true });
  expect(String(lost?.facts["takenAt"])).toContain("takeAndForget");
  expect(reports("H02", "collected", clock)).toMatchObject([{ facts: { waiting: 2, waitedMs: 10, lost: 1 } }]);
  expect(sem.stats()).toMatchObject({ held: 1, waiting: 2 }); // it is told, and nothing is given back behind anybody
});

it("knows the calls of a limiter for as long as they have their slots, whatever comes of them", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const limit = new Limiter(1, { name: "held-limiter", clock });
  const { promise, reject } = Promise.withResolvers<never>();
  let asked = 0;
  // oxlint-disable-next-line unicorn/no-thenable -- a query that is sent each time somebody asks for its result
  const query = { then: (...settle: readonly never[]) => void ((asked += 1), promise.then(...(settle as []))) };
  const call = limit.run(() => query as unknown as Promise<never>);
  await clock.advance(30_000);
  expect(reports("H01", "held-limiter", clock)).toMatchObject([{ facts: { heldMs: 30_000, collected: false } }]);
  reject(new Error("gone wrong"));
  await expect(call).rejects.toThrow("gone wrong");
  expect(asked).toBe(1);
  await expect(limit.run(() => Promise.reject(new Error("at once")))).rejects.toThrow("at once");
  await expect(
    limit.run(() => {
      throw new Error("thrown");
    }),
  ).rejects.toThrow("thrown");
  expect(await limit.run(() => "plain")).toBe("plain");
  await clock.advance(60_000);
  expect(reports("H01", "held-limiter", clock)).toEqual([]);
});

it("knows a guard that was let go of for a condition for held as long as it is, and no longer", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const mutex = new Mutex({ name: "held-condition", clock });
  const changed = new Condition(mutex, { clock });
  const guard = await mutex.acquire();
  const wait = changed.wait(guard);
  await clock.advance(60_000);
  expect(reports("H01", "held-condition", clock)).toEqual([]);
  changed.signal();
  await wait;
  await clock.advance(30_000);
  expect(reports("H01", "held-condition", clock)).toHaveLength(1);
  guard.release();
  expect(reports("H01", "held-condition", clock)).toEqual([]);
});

it("knows what a pool has lent, also to who waited for it", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const pool = new Pool(1, { create: () => ({}), name: "held-pool", clock });
  const first = await pool.acquire();
  const second = pool.acquire();
  await clock.advance(30_000);
  expect(reports("H01", "held-pool", clock)).toMatchObject([{ facts: { heldMs: 30_000 } }]);
  first.release();
  expect(reports("H01", "held-pool", clock)).toEqual([]);
  const lease = await second;
  await clock.advance(30_000);
  const [report] = reports("H01", "held-pool", clock);
  expect(String(report?.facts["takenAt"]).split("\n")[0]).toContain("held.test.ts");
  lease.release();
  expect(reports("H01", "held-pool", clock)).toEqual([]);
});

it("lets who waits for a permit hope as long as one of those that are out can come back", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const sem = new Semaphore(2, { name: "half-lost", clock });
  await takeAndForget(sem);
  const permit = await sem.acquire();
  const waiter = sem.acquire();
  for (let tries = 0; reports("H01", "half-lost", clock).length === 0 && tries < 100; tries += 1) {
    await turn();
    collectGarbage();
  }
  expect(reports("H01", "half-lost", clock)).toHaveLength(1);
  expect(reports("H02", "half-lost", clock)).toEqual([]);
  permit.release();
  (await waiter).release();
});

it("tells nothing of permits that went back and were collected then", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const sem = new Semaphore(1, { name: "healthy", clock });
  for (let times = 0; times < 100; times += 1) await sem.run(() => turn());
  for (let tries = 0; tries < 5; tries += 1) {
    await turn();
    collectGarbage();
  }
  await clock.advance(60_000);
  expect(doctor({ clock }).filter(({ subject }) => subject.name === "healthy")).toEqual([]);
});

it("raises an alarm on what is held too long, and clears it when it goes back", async () => {
  const clock = new VirtualClock();
  using _ = enable({ clock });
  const sem = new Semaphore(2, { name: "held-alarm", dependency: "disk", clock });
  const permit = await sem.acquire();
  using watch = watchAlarms([{ measure: "held", above: 5_000, dependency: "disk" }], { clock });
  await clock.advance(6_000);
  expect(watch.raised).toMatchObject([{ subject: { kind: "semaphore", name: "held-alarm" }, value: 6_000 }]);
  permit.release();
  await clock.advance(1_000);
  expect(watch.raised).toEqual([]);
});
