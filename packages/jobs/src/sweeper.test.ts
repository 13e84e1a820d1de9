import { VirtualClock } from "sluice/testing";
import { expect, it } from "vitest";
import { MemoryStore } from "./memory/memory-store.ts";
import { Sweeper } from "./sweeper.ts";

it.each([
  [false, 1],
  [true, 0],
])("closed while the own leases are kept alive: %s; then sweeps %d times", async (isClosed, times) => {
  const clock = new VirtualClock();
  const beat = Promise.withResolvers<void>();
  const seen: unknown[] = [];
  const sweeper = new Sweeper({
    store: new MemoryStore({ clock }),
    queue: "mail",
    clock,
    leaseMs: 30_000,
    maxCrashes: 3,
    beat: () => beat.promise,
    onSwept: (swept) => seen.push(swept),
    onError: (error) => seen.push(error),
  });
  void sweeper.sweep();
  if (isClosed) sweeper.close();
  beat.resolve();
  await clock.advance(1);
  expect([seen.length, clock.timers]).toEqual([times, 0]);
});
