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

it("refuses a transaction, having none", async () => {
  const store = new MemoryStore();
  await expect(store.add([{ queue: "q", payload: null }], { transaction: {} })).rejects.toThrow(TypeError);
  expect(await store.list({})).toEqual([]);
});
