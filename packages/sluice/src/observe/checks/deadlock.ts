/** H03 and H04: waits in a ring. */
import type { Exam } from "../exam.ts";
import type { Waiting } from "../ledger.ts";
import { report, type Report, span } from "../report.ts";
import { titleOf } from "../subject.ts";
import { WaitFor } from "../wait-for.ts";

export function deadlocks({ lenders, now, thresholds }: Exam): Report[] {
  return new WaitFor(lenders, now, thresholds.stallMs).rings().map((ring) => deadlockReport(ring, now));
}

/** About a ring of at least one wait. */
export function deadlockReport(ring: readonly Waiting[], now: number): Report {
  const [first] = ring;
  if (first === undefined) throw new RangeError("ring must have at least one wait, got none");
  const lenders = new Set(ring.map(({ lender }) => lender));
  const { subject } = first.lender;
  const waitedMs = ring.reduce((least, { since }) => Math.min(least, now - since), Infinity);
  const facts = {
    waitedMs,
    waits: ring.length,
    path: [...lenders].map((lender) => titleOf(lender.subject)).join(" → "),
    waitsAt: ring.map(({ stack }) => stack).join("\n\n"),
  };
  if (lenders.size > 1) {
    const names = [...[...lenders].slice(1), first.lender].map((lender) => titleOf(lender.subject));
    const says = `is held up by one who waits for ${names.join(", which is held up by one who waits for ")}`;
    return report("H03", subject, `${says}, all for ${span(waitedMs)}`, facts);
  }
  const says = `is waited for by those who hold it, for ${span(waitedMs)}`;
  if (SLOTS.has(subject.kind)) return report("H04", subject, says, facts);
  return report("H03", subject, says, facts, { remedy: SELF_REMEDY });
}

const SELF_REMEDY =
  "take it once: hand on to what is called inside what you hold, or call what needs no lock of its own";

/** What has slots in which functions run. */
const SLOTS: ReadonlySet<string> = new Set(["limiter", "adaptive-limiter", "task-group"]);
