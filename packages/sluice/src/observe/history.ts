/** What the doctor has seen before: some faults show only in two looks at the same thing. */
import type { Clock } from "../clock/clock.ts";
import type { Stats } from "../internal/names.ts";

export interface Point {
  readonly at: number;
  readonly depth: number;
  readonly ageMs: number;
  readonly stats: Stats;
}

/** What is remembered of one thing. */
export interface Trail {
  /** As many looks as `MAX_POINTS`, the latest at the end. */
  readonly points: readonly Point[];
  /** Since when nothing has been let in or out, as far as was looked. */
  readonly idleSince: number;
}

interface Memory extends Trail {
  readonly points: Point[];
  idleSince: number;
  done: number | undefined;
}

const MAX_POINTS = 8;
/** By clock, since instants of two clocks have nothing to do with each other. */
const memories = new WeakMap<Clock, WeakMap<object, Memory>>();

/** Adds a look, and tells what is known with it. */
export function remember(clock: Clock, target: object, point: Point, done: number | undefined): Trail {
  let known = memories.get(clock);
  if (known === undefined) memories.set(clock, (known = new WeakMap()));
  let memory = known.get(target);
  if (memory === undefined) known.set(target, (memory = { points: [], idleSince: point.at, done }));
  if (memory.done !== done) memory.idleSince = point.at;
  memory.done = done;
  if (memory.points.at(-1)?.at === point.at) memory.points.pop(); // two looks at one instant show no trend
  memory.points.push(point);
  if (memory.points.length > MAX_POINTS) memory.points.shift();
  return memory;
}
