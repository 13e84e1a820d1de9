/** H18: a message that an actor has been at for so long that all others wait for it. */
import type { Exam } from "../exam.ts";
import { report, type Report, span } from "../report.ts";

export function slowMessages({ looks, thresholds }: Exam): Report[] {
  return looks.flatMap(({ subject, stats, readings }) => {
    const ranMs = Number(stats["oldestRunMs"]);
    if (subject.kind !== "actor" || ranMs < thresholds.stallMs) return [];
    const { depth = 0 } = readings;
    const says = `has been at one message for ${span(ranMs)}, with ${depth} more in line`;
    return [report("H18", subject, says, { ranMs, waiting: depth })];
  });
}
