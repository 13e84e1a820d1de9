/** H02, H05, H07 and H12: lines that stand still, get older, or grow. */
import type { Exam, Look } from "../exam.ts";
import type { Point } from "../history.ts";
import { counted, report, type Report, span } from "../report.ts";

/** Looks that it takes at least to tell a trend. */
const TREND = 4;
/** A line that is fuller than this is no longer healthy to look at. */
const HEALTHY_SHARE = 0.5;

/** H02: items or producers that wait while nobody takes. */
export function nobodyTakes({ looks, now, thresholds }: Exam): Report[] {
  return looks.flatMap(({ subject, stats, readings, trail }) => {
    const { waitingProducers, waitingConsumers } = stats;
    const idleMs = now - trail.idleSince;
    if (typeof waitingProducers !== "number" || waitingProducers === 0 || waitingConsumers !== 0) return [];
    if (idleMs < thresholds.stallMs) return [];
    const says = `holds ${counted(waitingProducers, "producer")} back, and nobody has taken anything for ${span(idleMs)}`;
    return [report("H02", subject, says, { waitingProducers, size: readings.depth ?? 0, idleMs })];
  });
}

/** H05 */
export function growsOld({ looks, thresholds }: Exam): Report[] {
  return looks.flatMap(({ subject, readings, trail }) => {
    const { points } = trail;
    const [first, last] = [points[0], points.at(-1)];
    const { depth = 0, capacity = Infinity } = readings;
    if (first === undefined || last === undefined) return [];
    const isOld = last.ageMs >= thresholds.maxWaitMs && rises(points, ({ ageMs }) => ageMs);
    const looksHealthy = depth <= Math.min(thresholds.maxLine, capacity * HEALTHY_SHARE);
    if (!isOld || !looksHealthy) return [];
    const room = capacity === Infinity ? "" : ` of ${capacity}`;
    const says = `has only ${depth}${room} in line, but the oldest went from ${span(first.ageMs)} to ${span(last.ageMs)}`;
    return [report("H05", subject, says, { depth, capacity, ageMs: last.ageMs, ageBeforeMs: first.ageMs })];
  });
}

/** H07: whose slots are all taken while somebody has waited long, the one with the oldest wait first. */
export function saturated({ looks, thresholds }: Exam): Report[] {
  const full = looks.filter(({ readings }) => {
    const { limit, used = 0, ageMs = 0, depth = 0 } = readings;
    return limit !== undefined && used >= limit && depth > 0 && ageMs >= thresholds.maxWaitMs;
  });
  const byAge = full.toSorted((a, b) => (b.readings.ageMs ?? 0) - (a.readings.ageMs ?? 0));
  return byAge.map(({ subject, dependency, readings }, index) => {
    const { limit = 0, depth = 0, ageMs = 0 } = readings;
    const before = dependency === undefined ? "" : ` before ${dependency}`;
    const says = `has ${limit} of ${limit} taken${before} and ${depth} waiting, the oldest for ${span(ageMs)}`;
    const facts = { limit, waiting: depth, ageMs, rank: index + 1, dependency: dependency ?? "" };
    return report("H07", subject, says, facts);
  });
}

/** H12: lines that nothing bounds and that get longer with each look. */
export function growsLong({ looks, thresholds }: Exam): Report[] {
  return looks.flatMap((look) => {
    const { subject, trail } = look;
    const { points } = trail;
    const [first, last] = [points[0], points.at(-1)];
    if (first === undefined || last === undefined || isBounded(look)) return [];
    if (last.depth < thresholds.maxLine || !rises(points, ({ depth }) => depth)) return [];
    const tookMs = last.at - first.at;
    const says = `has a line without bound that grew from ${first.depth} to ${last.depth} in ${span(tookMs)}`;
    return [report("H12", subject, says, { depth: last.depth, depthBefore: first.depth, tookMs })];
  });
}

function isBounded({ readings }: Look): boolean {
  return readings.capacity !== undefined && readings.capacity < Infinity;
}

/** In each of the later looks it was more than in any of the earlier: what goes up and down around one level is no trend. */
function rises(points: readonly Point[], of: (point: Point) => number): boolean {
  const values = points.map(of);
  const middle = values.length >> 1;
  return values.length >= TREND && Math.min(...values.slice(middle)) > Math.max(...values.slice(0, middle));
}
