/** Orders of composed policies in which one defeats another, under the report that tells of what comes of it. */
import type { ComposeProblem } from "../../resilience/compose-problems.ts";
import type { Exam } from "../exam.ts";
import { type DiagnosisId, report, type Report } from "../report.ts";

const SIGNS: ReadonlyMap<ComposeProblem["rule"], DiagnosisId> = new Map([
  ["slot-held-while-waiting", "H01"],
  ["same-limit-twice", "H04"],
  ["fallback-inside", "H09"],
  ["slot-shared-by-hedge", "H13"],
  ["slot-freed-early", "H17"],
  ["timeout-never-reached", "H17"],
]);

/** The others let through more attempts than they were to. */
const ELSE: DiagnosisId = "H06";

export function misordered({ looks }: Exam): Report[] {
  return looks.flatMap(({ subject, target }) => {
    const problems = subject.kind === "compose" && "problems" in target ? target.problems : [];
    return (problems as readonly ComposeProblem[]).map(({ rule, failureMode, outer, inner, evidence, remedy }) =>
      report(
        SIGNS.get(rule) ?? ELSE,
        subject,
        `has ${evidence}`,
        { rule, outer, inner },
        { failureModes: [failureMode], remedy },
      ),
    );
  });
}
