/** What 10,000 holds cost each of the three, on this machine, in real time. */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KINDS, openSeatHolds } from "./open.ts";

const COUNT = 10_000;
const HOLD_MS = 1_500;

/** Prints a line for each. */
export async function printCosts(): Promise<void> {
  for (const kind of KINDS) {
    const folder = mkdtempSync(join(tmpdir(), "seats-"));
    const path = join(folder, "seats.db");
    const seats = Array.from({ length: COUNT }, (_, index) => `S${index}`);
    const all = Promise.withResolvers<undefined>();
    let left = COUNT;
    const onFreed = (): void => {
      left -= 1;
      if (left === 0) all.resolve(undefined);
    };
    {
      // Held so long that none is over before the last has begun.
      const holdMs = HOLD_MS + COUNT / 2;
      await using holds = await openSeatHolds(kind, { path, seats, onFreed, holdMs, everyMs: 500 });
      const startedAt = performance.now();
      for (const seat of seats) await holds.hold(seat, "ann");
      const beganMs = performance.now() - startedAt;
      const cpu = process.cpuUsage();
      await all.promise;
      const { user, system } = process.cpuUsage(cpu);
      const each = (ms: number): string => `${((ms * 1_000) / COUNT).toFixed(0).padStart(4)} µs`;
      const kb = Math.round(statSync(path).size / 1_000);
      console.log(
        `${kind.padEnd(12)} begin ${each(beganMs)}, end ${each((user + system) / 1_000)} of CPU, file ${kb} kB`,
      );
    }
    rmSync(folder, { recursive: true });
  }
}
