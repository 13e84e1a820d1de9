/**
 * H06: attempts that multiply. While `enable` is on it is known which layers were called within which. Without it, and in
 * browsers, which have no async context, all that repeat calls to one dependency are taken for nested, as far as their
 * totals allow; then layers without a common dependency are not seen together, and layers beside each other may be.
 */
import type { Exam, LayerLook, Look } from "../exam.ts";
import { REPEATED } from "../nesting.ts";
import { report, type Report } from "../report.ts";
import { type Subject, titleOf } from "../subject.ts";

/** With fewer calls it may be chance. */
const MIN_CALLS = 10;

/** H06: each thing that repeats calls for itself, or all that do so one within the other. */
export function multiplies({ looks, nests, thresholds }: Exam): Report[] {
  const stacks = nests === undefined ? guess(looks) : deepest(nests);
  return stacks.flatMap(({ layers, calls, evidence }) => {
    const innermost = layers.at(-1);
    if (innermost === undefined || calls <= thresholds.maxAmplification) return [];
    const dependency = layers.findLast((layer) => layer.dependency !== undefined)?.dependency;
    const about = dependency === undefined ? innermost.subject : { kind: "dependency", name: dependency };
    const verb = dependency === undefined ? "calls" : "is called";
    const says = `${verb} ${round(calls)} times for each call${evidence}`;
    return [report("H06", about, says, { calls, layers: layers.length })];
  });
}

interface Layer {
  readonly subject: Subject;
  readonly dependency: string | undefined;
  readonly calls: number;
  readonly attempts: number;
  readonly factor: number;
}

/** Layers that multiply, and what comes of one call. */
interface Stack {
  readonly layers: readonly Layer[];
  readonly calls: number;
  readonly evidence: string;
}

/** One for all ways to the same layers, and none for what goes on to a layer that makes more of it. */
function deepest(nests: NonNullable<Exam["nests"]>): Stack[] {
  const worst = new Map<string, Stack>();
  for (const nest of nests) {
    const layers = layersOf(nest);
    const key = layers.map(({ subject }) => titleOf(subject)).join(" > ");
    const calls = productOf(layers);
    const names = layers.map(({ subject, factor }) => `${titleOf(subject)} ${round(factor)}`).join(" × ");
    if (calls > (worst.get(key)?.calls ?? 0)) worst.set(key, { layers, calls, evidence: `: ${names}` });
  }
  const isWithin = ([key, stack]: [string, Stack]): boolean =>
    [...worst].some(([deeper, { calls }]) => deeper.startsWith(`${key} > `) && calls >= stack.calls);
  return [...worst].filter((each) => !isWithin(each)).map(([, stack]) => stack);
}

function guess(looks: readonly Look[]): Stack[] {
  const groups = Map.groupBy(looks, ({ dependency, target }) => dependency ?? target);
  return [...groups.values()].map((group) => {
    const layers = layersOf(group);
    // Layers beside each other don't multiply: no more attempts come of a call than were made of the fewest calls.
    const most = Math.max(...layers.map(({ attempts }) => attempts));
    const calls = Math.min(productOf(layers), most / Math.min(...layers.map((layer) => layer.calls)));
    const names = layers.map(({ subject, factor }) => `${titleOf(subject)} × ${round(factor)}`).join(", ");
    return { layers, calls, evidence: `, by ${names}` };
  });
}

function productOf(layers: readonly Layer[]): number {
  return layers.reduce((product, { factor }) => product * factor, 1);
}

/**
 * Those that add calls, by what they did since the first look that is remembered, but for those that have made too few
 * calls to tell.
 */
function layersOf(looks: readonly LayerLook[]): Layer[] {
  return looks.flatMap(({ subject, dependency, stats, trail }) => {
    const before = trail.points.length > 1 ? trail.points[0]?.stats : undefined;
    const since = (count: string): number => Number(stats[count]) - Number(before?.[count] ?? 0);
    const key = REPEATED.get(subject.kind);
    if (key === undefined) return [];
    const attempts = since("attempts");
    const calls = attempts - since(key);
    const factor = attempts / calls;
    return calls >= MIN_CALLS && factor > 1 ? [{ subject, dependency, calls, attempts, factor }] : [];
  });
}

function round(factor: number): number {
  return Math.round(factor * 10) / 10;
}
