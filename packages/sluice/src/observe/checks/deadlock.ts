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
  const waitedMs = now - Math.max(...ring.map(({ since }) => since));
  const facts = {
    waitedMs,
    waits: ring.length,
    path: [...lenders].map((lender) => titleOf(lender.subject)).join(" → "),
    waitsAt: ring.map(({ stack }) => stack).join("\n\n"),
  };
  if (lenders.size > 1) {
    const others = [...lenders].slice(1).map((lender) => titleOf(lender.subject));
    const says = `is waited for by who holds ${others.join(", by who holds ")}, in a ring, for ${span(waitedMs)}`;
    return report("H03", subject, says, facts);
  }
  const says = `is waited for by who holds it, for ${span(waitedMs)}`;
  return report(SLOTS.has(subject.kind) ? "H04" : "H03", subject, says, facts);
}

/** What has slots in which functions run. */
const SLOTS: ReadonlySet<string> = new Set(["limiter", "adaptive-limiter", "task-group"]);
