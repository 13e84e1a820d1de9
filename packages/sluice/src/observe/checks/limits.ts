/** H13: limits on one dependency that add up to more than it can take. */
import { dependencies } from "../dependency.ts";
import type { Exam } from "../exam.ts";
import { report, type Report } from "../report.ts";
import { titleOf } from "../subject.ts";

export function addUp({ looks }: Exam): Report[] {
  const all = looks.filter(({ dependency, readings }) => dependency !== undefined && readings.limit !== undefined);
  const byDependency = Map.groupBy(all, ({ dependency }) => dependency);
  return [...dependencies()].flatMap(([name, { capacity, replicas }]) => {
    const limits = byDependency.get(name) ?? [];
    const each = limits.reduce((sum, { readings }) => sum + (readings.limit ?? 0), 0);
    const sum = each * replicas;
    if (sum <= capacity) return [];
    const parts = limits.map(({ subject, readings }) => `${titleOf(subject)} ${readings.limit}`).join(", ");
    const times = replicas === 1 ? "" : `, times ${replicas} processes`;
    const says = `can take ${capacity} at once, but its limits let ${sum} through: ${parts}${times}`;
    return [report("H13", { kind: "dependency", name }, says, { capacity, sum, replicas, limits: limits.length })];
  });
}
