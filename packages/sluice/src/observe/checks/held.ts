/** H01 and the part of H02 that comes from it: what was taken and doesn't come back. */
import type { Exam } from "../exam.ts";
import type { Hold } from "../ledger.ts";
import { report, type Report, span } from "../report.ts";

export function heldTooLong({ lenders, now, thresholds }: Exam): Report[] {
  return lenders.flatMap(({ holds, subject }) =>
    [...holds].flatMap((hold) => {
      const heldMs = now - hold.takenAt;
      if (!hold.isCollected && heldMs < thresholds.maxHeldMs) return [];
      const facts = { heldMs, collected: hold.isCollected, weight: hold.weight, takenAt: hold.stack };
      const says = hold.isCollected
        ? `will not get back what it gave out ${span(heldMs)} ago: it was garbage-collected unreleased`
        : `has not got back what it gave out ${span(heldMs)} ago`;
      return [report("H01", subject, says, facts)];
    }),
  );
}

/** Who waits for what only the dead could give back. */
export function waitingForLost({ lenders, now }: Exam): Report[] {
  return lenders.flatMap(({ holds, waits, subject }) => {
    const isLost = holds.size > 0 && [...holds].every((hold: Hold) => hold.isCollected);
    if (!isLost || waits.size === 0) return [];
    const [oldest] = waits; // they are in the order of joining
    const waitedMs = now - (oldest?.since ?? now);
    const says = `is waited for by ${waits.size}, for up to ${span(waitedMs)}, and all it lent was garbage-collected`;
    return [report("H02", subject, says, { waiting: waits.size, waitedMs, lost: holds.size })];
  });
}
