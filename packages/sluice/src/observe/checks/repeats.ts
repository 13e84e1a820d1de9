/** H06: attempts that multiply, over the layers that repeat calls to one dependency. */
import type { Exam, Look } from "../exam.ts";
import { report, type Report } from "../report.ts";
import { titleOf } from "../subject.ts";

/** By kind, which of its counts tells attempts that were not the first of a call. */
const REPEATED: ReadonlyMap<string, string> = new Map([
  ["retry", "retries"],
  ["hedge", "extra"],
  ["failover", "extra"],
]);
/** With fewer calls it may be chance. */
const MIN_CALLS = 10;

/** H06: each thing that repeats calls for itself, or all of one dependency together. */
export function multiplies({ looks, thresholds }: Exam): Report[] {
  const layers = looks.flatMap((look) => {
    const layer = layerOf(look);
    return layer === undefined || layer.factor <= 1 ? [] : [{ look, ...layer }];
  });
  return [...Map.groupBy(layers, ({ look }) => look.dependency ?? look.target).values()].flatMap((group) => {
    const nested = group.reduce((product, { factor }) => product * factor, 1);
    // Layers beside each other don't multiply: no more attempts come of a call than were made of the fewest calls.
    const most = Math.max(...group.map(({ attempts }) => attempts));
    const calls = Math.min(nested, most / Math.min(...group.map((layer) => layer.calls)));
    const [first] = group;
    if (first === undefined || calls <= thresholds.maxAmplification) return [];
    const { dependency, subject } = first.look;
    const about = dependency === undefined ? subject : { kind: "dependency", name: dependency };
    const names = group.map(({ look, factor }) => `${titleOf(look.subject)} × ${round(factor)}`).join(", ");
    const says = `is called ${round(calls)} times for each call, by ${names}`;
    return [report("H06", about, says, { calls, layers: group.length })];
  });
}

interface Layer {
  readonly calls: number;
  readonly attempts: number;
  readonly factor: number;
}

/** What it did since the first look that is remembered; undefined for what repeats nothing, or has made too few calls. */
function layerOf({ subject, stats, trail }: Look): Layer | undefined {
  const key = REPEATED.get(subject.kind);
  if (key === undefined) return undefined;
  const before = trail.points.length > 1 ? trail.points[0]?.stats : undefined;
  const since = (count: string): number => Number(stats[count]) - Number(before?.[count] ?? 0);
  const attempts = since("attempts");
  const calls = attempts - since(key);
  return calls >= MIN_CALLS ? { calls, attempts, factor: attempts / calls } : undefined;
}

function round(factor: number): number {
  return Math.round(factor * 10) / 10;
}
