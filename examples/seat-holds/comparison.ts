/** What each of the three does, found out in virtual time; only the process that is killed is a real one. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TimerOptions, TimerTask } from "sluice";
import { seededRandom, VirtualClock, type VirtualTimer } from "sluice/testing";
import { type Kind, KINDS, openSeatHolds, type OpenOptions } from "./open.ts";
import { killDesk } from "./killed-desk.ts";
import type { SeatHolds } from "./seat-holds.ts";

const HOLD_MS = 300_000;
const MINUTE_MS = 60_000;

/** Of each kind what is found, by what is asked. */
export function examineAll(): Promise<ReadonlyMap<string, string>[]> {
  return inFolder(async (folder) => {
    await killDesk(folder, HOLD_MS, KINDS, "held");
    return Promise.all(KINDS.map((kind) => examine(kind, join(folder, `${kind}.db`))));
  });
}

/** @param left the file of a process that was killed */
async function examine(kind: Kind, left: string): Promise<ReadonlyMap<string, string>> {
  const [usual, isFreed, jumps] = await Promise.all([usually(kind), isFreedIn(left, kind), heldAcrossJumps(kind)]);
  return new Map([
    ["late at expiry, mean of 60", `${Math.round(usual.meanLateMs / 1_000)} s`],
    ["late at expiry, at most", `${Math.round(usual.maxLateMs / 1_000)} s`],
    ["ends after its process was killed", isFreed ? "yes" : "no"],
    ["tells again after that failed", usual.timesTold > 1 ? "yes" : "no"],
    ["wall clock 3 min forward: held for", `${Math.round(jumps.forwardMs / MINUTE_MS)} min`],
    ["wall clock 3 min back: held for", `${Math.round(jumps.backMs / MINUTE_MS)} min`],
    ["wake-ups in a minute, nothing over", String(usual.wakeUps)],
  ]);
}

interface Usual {
  readonly wakeUps: number;
  /** Of a seat where the first time fails. */
  readonly timesTold: number;
  /** Of holds that begin at any time. */
  readonly meanLateMs: number;
  readonly maxLateMs: number;
}

async function usually(kind: Kind): Promise<Usual> {
  const clock = new CountingClock();
  const random = seededRandom(1);
  const seats = Array.from({ length: 60 }, (_, index) => `S${index}`);
  const dueAt = new Map<string, number>();
  const late: number[] = [];
  let [wakeUps, timesTold] = [0, 0];
  const onFreed = (seat: string): void => {
    const due = dueAt.get(seat);
    if (due !== undefined) late.push(clock.wallNow() - due);
    else if ((timesTold += 1) === 1) throw new Error("nobody at home");
  };
  await withHolds(kind, { seats: ["A1", ...seats], onFreed, onError: () => {}, clock }, async (holds) => {
    holds.hold("A1", "ann");
    await clock.advance(1); // whatever begins has begun
    const before = clock.fired;
    await clock.advance(MINUTE_MS);
    wakeUps = clock.fired - before;
    for (const seat of seats) {
      await clock.advance(Math.floor(random() * 5_000));
      const hold = holds.hold(seat, "ann");
      if (hold !== undefined) dueAt.set(seat, hold.untilAt);
    }
    await clock.advance(HOLD_MS + MINUTE_MS);
  });
  const sum = late.reduce((total, each) => total + each, 0);
  return { wakeUps, timesTold, meanLateMs: sum / seats.length, maxLateMs: Math.max(...late) };
}

async function isFreedIn(path: string, kind: Kind): Promise<boolean> {
  const clock = new VirtualClock({ wallStartAt: Date.now() });
  const holds = await openSeatHolds(kind, { path, seats: [], onFreed: () => {}, clock });
  try {
    await clock.advance(HOLD_MS + MINUTE_MS);
    return holds.seats.stateOf("A1") === "free";
  } finally {
    await holds.close();
  }
}

/** By the monotonic clock, if the wall clock is set just after the hold has begun. */
async function heldAcrossJumps(kind: Kind): Promise<{ readonly forwardMs: number; readonly backMs: number }> {
  const clock = new VirtualClock({ wallStartAt: 60 * MINUTE_MS });
  const held: number[] = [];
  let beganAt = 0;
  const onFreed = (): void => void held.push(clock.now() - beganAt);
  await withHolds(kind, { seats: ["A1"], onFreed, clock }, async (holds) => {
    for (const jumpMs of [3 * MINUTE_MS, -3 * MINUTE_MS]) {
      beganAt = clock.now();
      holds.hold("A1", "ann");
      await clock.advance(1);
      clock.jumpWall(jumpMs);
      await clock.advance(10 * MINUTE_MS - 1);
    }
  });
  const [forwardMs = Infinity, backMs = Infinity] = held;
  return { forwardMs, backMs };
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
  return inFolder(async (folder) => {
    const holds = await openSeatHolds(kind, { ...options, path: join(folder, "seats.db") });
    try {
      await fn(holds);
    } finally {
      await holds.close();
    }
  });
}

async function inFolder<T>(fn: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "seats-"));
  try {
    return await fn(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
