/** H14: loads that others join though they have been under way for too long, and values that nobody replaced. */
import type { Exam } from "../exam.ts";
import { report, type Report, span } from "../report.ts";

/** By kind, which of its ages tells of the oldest load. */
const FLIGHTS: ReadonlyMap<string, string> = new Map([
  ["single-flight", "oldestMs"],
  ["cache", "oldestLoadMs"],
]);

export function tooOld({ looks, thresholds }: Exam): Report[] {
  const { maxFlightMs, maxSnapshotMs } = thresholds;
  return looks.flatMap(({ subject, stats }) => {
    const isSnapshot = subject.kind === "snapshot";
    const ageMs = stats[isSnapshot ? "ageMs" : (FLIGHTS.get(subject.kind) ?? "")];
    if (typeof ageMs !== "number" || ageMs < (isSnapshot ? maxSnapshotMs : maxFlightMs)) return [];
    const says = isSnapshot
      ? `has had one value for ${span(ageMs)}`
      : `has a load under way for ${span(ageMs)}, whose result all who join it will get`;
    return [report("H14", subject, says, { ageMs })];
  });
}
