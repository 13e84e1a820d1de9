/** H08 and H19: a readers-writer lock that lets one side wait for ever, or that is used for what it is no good at. */
import type { Stats } from "../../internal/names.ts";
import type { Exam, Look } from "../exam.ts";
import { report, type Report, span } from "../report.ts";

/** So many locks given out tell how it is used. */
const MIN_LOCKS = 1_000;
/** With fewer reads than nine for each write, readers hardly ever meet, and a mutex does the same for less. */
const MIN_READ_SHARE = 0.9;

type Side = "readers" | "writers";

/** H08: somebody of a class has waited in all looks, others were let in meanwhile, and none of that class. */
export function starved({ looks, thresholds }: Exam): Report[] {
  return looks.filter(isRwLock).flatMap((look) => {
    const { subject } = look;
    return (["writers", "readers"] as const).flatMap((side) => {
      const points = pointsOfWait(look, side);
      const [first, last] = [points[0], points.at(-1)];
      if (first === undefined || last === undefined || last.at - first.at < thresholds.stallMs) return [];
      const overtakers = given(last.stats, other(side)) - given(first.stats, other(side));
      if (overtakers === 0) return [];
      const waitedMs = last.at - first.at;
      const says = `has let in ${overtakers} ${other(side)} and none of the ${side} that wait, for ${span(waitedMs)}`;
      return [report("H08", subject, says, { side, waiting: waitingOf(last.stats, side), overtakers, waitedMs })];
    });
  });
}

/** The latest looks, from the first on at which the side waited and since which none of it was let in. */
function pointsOfWait({ trail }: Look, side: Side): Look["trail"]["points"] {
  const { points } = trail;
  const now = points.at(-1);
  if (now === undefined) return [];
  const moved = points.findLastIndex(
    ({ stats }) => waitingOf(stats, side) === 0 || given(stats, side) !== given(now.stats, side),
  );
  return points.slice(moved + 1);
}

/** H19 */
export function misfit({ looks }: Exam): Report[] {
  return looks.filter(isRwLock).flatMap(({ subject, stats }) => {
    const [reads, writes] = [given(stats, "readers"), given(stats, "writers")];
    const readShare = reads / (reads + writes);
    if (reads + writes < MIN_LOCKS || readShare >= MIN_READ_SHARE) return [];
    const says = `was taken ${writes} times to write and ${reads} times to read`;
    return [report("H19", subject, says, { reads, writes, readShare })];
  });
}

function isRwLock({ subject }: Look): boolean {
  return subject.kind === "rw-lock";
}

function other(side: Side): Side {
  return side === "readers" ? "writers" : "readers";
}

function given(stats: Stats, side: Side): number {
  return Number(stats[side === "readers" ? "reads" : "writes"]);
}

function waitingOf({ waiting, waitingWriters }: Stats, side: Side): number {
  return side === "writers" ? Number(waitingWriters) : Number(waiting) - Number(waitingWriters);
}
