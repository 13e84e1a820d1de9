/** H11: a barrier or a latch that waits for who doesn't come, or to which more come than were expected. */
import type { Exam, Look } from "../exam.ts";
import { counted, report, type Report, span } from "../report.ts";

export function stalledParties({ looks, thresholds }: Exam): Report[] {
  return looks.flatMap((look) => {
    if (look.subject.kind === "barrier") return [...stalled(look, thresholds.stallMs), ...tooMany(look)];
    return look.subject.kind === "latch" ? [...stalled(look, thresholds.stallMs), ...usedAgain(look)] : [];
  });
}

function stalled({ subject, stats }: Look, stallMs: number): Report[] {
  const { waiting, oldestWaitMs } = stats;
  if (waiting === 0 || Number(oldestWaitMs) < stallMs) return [];
  const missing = stats["missing"] ?? `${Number(stats["remaining"])} of ${Number(stats["count"])}`;
  const says = `has kept ${waiting} waiting for ${span(Number(oldestWaitMs))}, and still misses ${missing}`;
  return [report("H11", subject, says, { waiting: Number(waiting), waitedMs: Number(oldestWaitMs), missing })];
}

function tooMany({ subject, stats }: Look): Report[] {
  const extra = Number(stats["extra"]);
  if (extra === 0) return [];
  const says = `expects ${stats["parties"]} parties, and had ${counted(extra, "arrival")} more than that`;
  return [report("H11", subject, says, { extra, parties: Number(stats["parties"]) })];
}

function usedAgain({ subject, stats }: Look): Report[] {
  const [late, count] = [Number(stats["late"]), Number(stats["count"])];
  if (late === 0) return [];
  const says = `was made for ${count} arrivals, and ${late} came when it was open: it opens once, and never closes again`;
  return [report("H11", subject, says, { late, count })];
}
