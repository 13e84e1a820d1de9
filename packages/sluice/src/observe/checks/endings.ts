/** H17 and H20: work that goes on though nobody wants it any more, and a shutdown that doesn't come to its end. */
import type { Exam } from "../exam.ts";
import { counted, report, type Report, span } from "../report.ts";

/** H17 */
export function abandoned({ looks, thresholds }: Exam): Report[] {
  return looks.flatMap(({ subject, stats }) => {
    const still = Number(stats["abandoned"] ?? 0);
    if (still > 0) {
      const says = `has ${counted(still, "call")} still running without a slot, for which nobody waits any more`;
      return [report("H17", subject, says, { abandoned: still })];
    }
    const runMs = Number(stats["oldestRunMs"] ?? 0);
    if (stats["state"] !== "cancelled" || stats["running"] === 0 || runMs < thresholds.stallMs) return [];
    const running = Number(stats["running"]);
    const says = `was cancelled, but has ${running} still running, the oldest for ${span(runMs)}`;
    return [report("H17", subject, says, { running, runMs })];
  });
}

interface Stopping {
  report(): { readonly targets: readonly { readonly name: string; readonly outcome: string }[] };
}

/** H20 */
export function stuckShutdown({ looks, now, thresholds }: Exam): Report[] {
  return looks.flatMap(({ subject, stats, trail, target }) => {
    const { phase } = stats;
    if (subject.kind !== "shutdown" || phase === "running") return [];
    const { targets } = (target as Stopping).report();
    const inside = targets.filter(({ outcome }) => outcome === (phase === "over" ? "inside" : "stopping"));
    const idleMs = now - trail.idleSince;
    if (inside.length === 0 || (phase !== "over" && idleMs < thresholds.stallMs)) return [];
    const names = inside.map(({ name }) => name).join(", ");
    const says = phase === "over" ? `is over, and left inside: ${names}` : `waits for ${names}, for ${span(idleMs)}`;
    return [report("H20", subject, says, { phase: String(phase), inside: names, idleMs })];
  });
}
