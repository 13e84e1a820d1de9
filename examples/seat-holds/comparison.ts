/** What each of the three does, found out in virtual time; only the process that is killed is a real one. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TimerOptions, TimerTask } from "sluice";
import { seededRandom, VirtualClock, type VirtualTimer } from "sluice/testing";
import { type OpenOptions, type Kind, openSeatHolds } from "./open.ts";
import { killDesk } from "./killed-desk.ts";
import type { SeatHolds } from "./seat-holds.ts";

const HOLD_MS = 300_000;
const MINUTE_MS = 60_000;

/** By what is asked. */
export async function examine(kind: Kind): Promise<ReadonlyMap<string, string>> {
  const [late, killed, failed, forward, back, wakeUps] = await Promise.all([
    lateness(kind),
    isFreedAfterDeath(kind),
    timesTold(kind),
    heldFor(kind, 3 * MINUTE_MS),
    heldFor(kind, -3 * MINUTE_MS),
    idleWakeUps(kind),
  ]);
  return new Map([
    ["late at expiry, mean of 60", `${Math.round(late.mean / 1_000)} s`],
    ["late at expiry, at most", `${Math.round(late.max / 1_000)} s`],
    ["ends after its process was killed", killed ? "yes" : "no"],
    ["tells again after that failed", failed > 1 ? "yes" : "no"],
    ["wall clock 3 min forward: held for", `${Math.round(forward / MINUTE_MS)} min`],
    ["wall clock 3 min back: held for", `${Math.round(back / MINUTE_MS)} min`],
    ["wake-ups in a minute, nothing over", String(wakeUps)],
  ]);
}

/** Of holds that begin at any time. */
async function lateness(kind: Kind): Promise<{ readonly mean: number; readonly max: number }> {
  const clock = new VirtualClock();
  const random = seededRandom(1);
  const seats = Array.from({ length: 60 }, (_, index) => `S${index}`);
  const dueAt = new Map<string, number>();
  const late: number[] = [];
  const onFreed = (seat: string): unknown => late.push(clock.wallNow() - (dueAt.get(seat) as number));
  await withHolds(kind, { seats, onFreed, clock }, async (holds) => {
    for (const seat of seats) {
      await clock.advance(Math.floor(random() * 5_000));
      const hold = await holds.hold(seat, "ann");
      if (hold !== undefined) dueAt.set(seat, hold.untilAt);
    }
    await clock.advance(HOLD_MS + MINUTE_MS);
  });
  return { mean: late.reduce((sum, each) => sum + each, 0) / seats.length, max: Math.max(...late) };
}

function isFreedAfterDeath(kind: Kind): Promise<boolean> {
  return inFolder(async (path) => {
    await killDesk(path, kind, HOLD_MS, "held");
    const clock = new VirtualClock({ wallStartAt: Date.now() });
    const holds = await openSeatHolds(kind, { path, seats: [], onFreed: () => {}, clock });
    try {
      await clock.advance(HOLD_MS + MINUTE_MS);
      return holds.seats.stateOf("A1") === "free";
    } finally {
      await holds.close();
    }
  });
}

async function timesTold(kind: Kind): Promise<number> {
  const clock = new VirtualClock();
  let told = 0;
  const onFreed = (): void => {
    told += 1;
    if (told === 1) throw new Error("nobody at home");
  };
  await withHolds(kind, { seats: ["A1"], onFreed, onError: () => {}, clock }, async (holds) => {
    await holds.hold("A1", "ann");
    await clock.advance(HOLD_MS + 2 * MINUTE_MS);
  });
  return told;
}

/** By the monotonic clock, if the wall clock is set just after the hold has begun. */
async function heldFor(kind: Kind, jumpMs: number): Promise<number> {
  const clock = new VirtualClock({ wallStartAt: 60 * MINUTE_MS });
  let freedAt = Infinity;
  const onFreed = (): void => void (freedAt = clock.now());
  await withHolds(kind, { seats: ["A1"], onFreed, clock }, async (holds) => {
    await holds.hold("A1", "ann");
    await clock.advance(1);
    clock.jumpWall(jumpMs);
    await clock.advance(10 * MINUTE_MS);
  });
  return freedAt;
}

async function idleWakeUps(kind: Kind): Promise<number> {
  const clock = new CountingClock();
  await withHolds(kind, { seats: ["A1"], onFreed: () => {}, holdMs: 60 * MINUTE_MS, clock }, async (holds) => {
    await holds.hold("A1", "ann");
    await clock.advance(1); // whatever begins has begun
    clock.fired = 0;
    await clock.advance(MINUTE_MS);
  });
  return clock.fired;
}

class CountingClock extends VirtualClock {
  fired = 0;

  override setTimer(delayMs: number, task: TimerTask, options?: TimerOptions): VirtualTimer {
    const onTimer = (): void => {
      this.fired += 1;
      task.onTimer();
    };
    return super.setTimer(delayMs, { onTimer }, options);
  }
}

function withHolds(
  kind: Kind,
  options: Omit<OpenOptions, "path">,
  fn: (holds: SeatHolds) => Promise<void>,
): Promise<void> {
  return inFolder(async (path) => {
    const holds = await openSeatHolds(kind, { ...options, path });
    try {
      await fn(holds);
    } finally {
      await holds.close();
    }
  });
}

async function inFolder<T>(fn: (path: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "seats-"));
  try {
    return await fn(join(folder, "seats.db"));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
