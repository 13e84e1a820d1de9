/** H09 and H16: failures that nobody was told of, and fan-outs that multiply. */
import type { Exam } from "../exam.ts";
import { counted, report, type Report } from "../report.ts";

/** H09 */
export function unseenFailures({ unseen }: Exam): Report[] {
  return unseen.map(({ subject, count, last }) => {
    const error = textOf(last);
    const says = `had ${counted(count, "failure")} that nobody was told of, the last of them ${error}`;
    return report("H09", subject, says, { count, error });
  });
}

/** H16 */
export function fansOut({ widest, thresholds }: Exam): Report[] {
  if (widest === undefined || widest.width <= thresholds.maxWidth) return [];
  const { width, depth, stack } = widest;
  const says = `made ${width} calls of one, over ${depth} levels that each look small`;
  return [report("H16", { kind: "fan-out", name: undefined }, says, { width, depth, startedAt: stack })];
}

/** It is anybody's, and may be what no words can be made of. */
function textOf(error: unknown): string {
  try {
    return String(error);
  } catch {
    return typeof error;
  }
}
