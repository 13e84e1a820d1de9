/** What 10,000 holds cost each of the three, on this machine, in real time. */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Kind, KINDS, openSeatHolds } from "./open.ts";

const COUNT = 10_000;
/** So long that none is over before the last has begun. */
const HOLD_MS = 6_500;

/** Prints a line for each. */
export async function printCosts(): Promise<void> {
  for (const kind of KINDS) {
    const folder = mkdtempSync(join(tmpdir(), "seats-"));
    try {
      console.log(`${kind.padEnd(12)} ${await costOf(kind, join(folder, "seats.db"))}`);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }
}

async function costOf(kind: Kind, path: string): Promise<string> {
  const seats = Array.from({ length: COUNT }, (_, index) => `S${index}`);
  const all = Promise.withResolvers<undefined>();
  let left = COUNT;
  const onFreed = (): void => {
    left -= 1;
    if (left === 0) all.resolve(undefined);
  };
  const holds = await openSeatHolds(kind, { path, seats, onFreed, holdMs: HOLD_MS, everyMs: 500 });
  const startedAt = performance.now();
  for (const seat of seats) holds.hold(seat, "ann");
  const beganMs = performance.now() - startedAt;
  const before = process.cpuUsage();
  await all.promise;
  const { user, system } = process.cpuUsage(before);
  await holds.close();
  const kb = Math.round(statSync(path).size / 1_000);
  return `begin ${each(beganMs)}, end ${each((user + system) / 1_000)} of CPU, file ${kb} kB`;
}

function each(ms: number): string {
  return `${((ms * 1_000) / COUNT).toFixed(0).padStart(4)} µs`;
}
