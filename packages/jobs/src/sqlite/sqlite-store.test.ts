import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { VirtualClock } from "sluice/testing";
import { describe, it } from "vitest";
import { storeCases } from "../conformance/index.ts";
import { SqliteStore } from "./sqlite-store.ts";

describe("in memory", () => {
  const cases = storeCases(async (options) => {
    const clock = new VirtualClock({ wallStartAt: Date.UTC(2030, 0, 1) });
    const store = await SqliteStore.open({ path: ":memory:", clock, ...options });
    return { store, clock, dispose: () => store.close() };
  });
  for (const { title, run } of cases) it(title, run);
});

describe("in a file", () => {
  const cases = storeCases(async (options) => {
    const folder = mkdtempSync(join(tmpdir(), "sqlite-store-"));
    const clock = new VirtualClock({ wallStartAt: Date.UTC(2030, 0, 1) });
    const store = await SqliteStore.open({ path: join(folder, "jobs.db"), durability: "normal", clock, ...options });
    const dispose = async (): Promise<void> => {
      await store.close();
      rmSync(folder, { recursive: true });
    };
    return { store, clock, dispose };
  });
  for (const { title, run } of cases) it(title, run);
});
