import { VirtualClock } from "sluice/testing";
import { expect, it } from "vitest";
import { storeCases } from "../conformance/index.ts";
import { MemoryStore } from "./memory-store.ts";

const cases = storeCases(async (options) => {
  const clock = new VirtualClock({ wallStartAt: Date.UTC(2030, 0, 1) });
  const store = new MemoryStore({ ...options, clock });
  return { store, clock, dispose: () => store.close() };
});

for (const { title, run } of cases) it(title, run);

it("hands out nothing early when the clock is put back, and all of it once it is due again", async () => {
  let wallNow = 1_000_000;
  class Set extends VirtualClock {
    override wallNow(): number {
      return wallNow;
    }
  }
  const store = new MemoryStore({ clock: new Set() });
  const claim = async (): Promise<unknown[]> =>
    (await store.claim({ queue: "q", max: 5, leaseMs: 1, worker: "w" })).map(({ payload }) => payload);
  await store.add([
    { queue: "q", payload: "now", priority: 1 },
    { queue: "q", payload: "old", runAt: 5 },
  ]);
  expect(await store.nextAt("q")).toBe(wallNow);
  wallNow -= 500_000;
  expect(await store.list({ states: ["ready"] })).toMatchObject([{ payload: "old" }]);
  expect(await claim()).toEqual(["old"]);
  expect(await store.stats("q")).toMatchObject({ scheduled: 1, ready: 0 });
  wallNow += 500_000;
  expect(await claim()).toEqual(["now"]);
});
