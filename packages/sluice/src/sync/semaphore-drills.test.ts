import { setImmediate as turn } from "node:timers/promises";
import { expect, it } from "vitest";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Semaphore } from "./semaphore.ts";

it("C08: a bulkhead each for A, B and C leaves A and B serving while C hangs", async () => {
  const clock = new VirtualClock();
  const work = (ms: number) => (): Promise<void> => new Promise((onTimer) => void clock.setTimer(ms, { onTimer }));
  const bulkheads = {
    a: new Semaphore(20, { clock }),
    b: new Semaphore(20, { clock }),
    c: new Semaphore(10, { clock }),
  };
  const served = { a: 0, b: 0, c: 0 };
  for (let call = 0; call < 100; call += 1) {
    for (const id of ["a", "b", "c"] as const) {
      const ms = id === "c" ? 1e9 : 10;
      bulkheads[id].run(work(ms), { timeoutMs: 1_000 }).then(
        () => (served[id] += 1),
        () => {},
      );
    }
  }
  await clock.advance(1_000);
  expect(served).toEqual({ a: 100, b: 100, c: 0 });
  expect(bulkheads.c.stats()).toMatchObject({ held: 10, waiting: 0, timedOut: 90 });
});

it("J17: guards one section of a call, whoever calls, while the rest of the call is free", async () => {
  const sem = new Semaphore(3);
  let [inside, most, outside] = [0, 0, 0];
  const call = async (): Promise<void> => {
    outside += 1;
    const permit = await sem.acquire();
    most = Math.max(most, (inside += 1));
    await turn();
    inside -= 1;
    permit.release();
    await turn();
    outside -= 1;
  };
  const calls = Array.from({ length: 10 }, call);
  expect(outside).toBe(10);
  await Promise.all(calls);
  expect([most, inside, outside, sem.available]).toEqual([3, 0, 0, 3]);
});

it("J17: a permit that is given back is never free while somebody waits, so that two cannot hold it", async () => {
  const sem = new Semaphore(1);
  const held = await sem.acquire();
  const waiter = sem.acquire();
  held.release();
  expect([sem.available, sem.waiting, sem.tryAcquire()]).toEqual([0, 0, undefined]); // the waiter's, who has not resumed yet
  (await waiter).release();
});

it.each([
  ["returns", () => 1],
  ["resolves", () => Promise.resolve(1)],
  ["throws", fail],
  ["rejects", () => Promise.reject(new Error("broken"))],
])("J18: gives the permit back when fn %s", async (_, fn) => {
  const sem = new Semaphore(2);
  await sem.run(fn, { weight: 2 }).catch((error: Error) => expect(error.message).toBe("broken"));
  expect(sem.available).toBe(2);
});

it.each(["D02", "K03"])(
  "%s: after three errors without finally the next call hangs, and its stats say why",
  async () => {
    const clock = new VirtualClock();
    const sem = new Semaphore(3, { clock });
    const handle = async (status: number): Promise<number> => {
      const permit = await sem.acquire({ timeoutMs: 5_000 });
      if (status === 503) throw new Error("unavailable");
      permit.release();
      return status;
    };
    for (let request = 0; request < 3; request += 1) await expect(handle(503)).rejects.toThrow("unavailable");
    const good = handle(200);
    const hangs = expect(good).rejects.toMatchObject({ code: "TIMEOUT" });
    await clock.advance(4_999);
    expect(sem.stats()).toMatchObject({ held: 3, available: 0, waiting: 1, oldestWaitMs: 4_999 });
    await clock.advance(1);
    await hangs;
  },
);

function fail(): never {
  throw new Error("broken");
}
