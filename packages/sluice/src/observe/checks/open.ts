/** H15: a breaker that stays open while calls come. */
import type { Exam } from "../exam.ts";
import type { Trail } from "../history.ts";
import { counted, report, type Report, span } from "../report.ts";

/** What was seen when it was first seen open, since it was last seen closed. */
interface Opened {
  readonly at: number;
  readonly rejected: number;
  readonly opened: number;
}

const seenOpen = new WeakMap<Trail, Opened>();

export function staysOpen({ looks, now, thresholds }: Exam): Report[] {
  return looks.flatMap(({ subject, stats, trail }) => {
    if (subject.kind !== "circuit-breaker" || stats["state"] === "closed") {
      seenOpen.delete(trail);
      return [];
    }
    const [rejected, opened] = [Number(stats["rejected"]), Number(stats["opened"])];
    const first = seenOpen.get(trail) ?? { at: now, rejected, opened };
    seenOpen.set(trail, first);
    const [openMs, turnedAway, trials] = [now - first.at, rejected - first.rejected, opened - first.opened];
    if (openMs < thresholds.maxOpenMs || turnedAway === 0) return [];
    const says = `has not closed again for ${span(openMs)}: it turned ${counted(turnedAway, "call")} away, and ${counted(trials, "trial")} failed`;
    return [report("H15", subject, says, { openMs, rejected: turnedAway, trials })];
  });
}
