/** Random operations on a store, told in a way that two stores with other ids and tokens tell alike. */
import type { Claim, JobRecord } from "../job.ts";
import type { MoveCause } from "../states.ts";
import type { Settlement, Store } from "../store.ts";

/** One store on the walk. Jobs and claims are known by the order in which they came. */
export class Side {
  readonly store: Store;
  readonly ids: string[] = [];
  readonly claims: Claim[] = [];
  readonly #nameOf = new Map<string, number>();

  constructor(store: Store) {
    this.store = store;
  }

  /** The name of a job, which is given one if it is new. */
  name(id: string): number {
    let name = this.#nameOf.get(id);
    if (name === undefined) {
      name = this.ids.push(id) - 1;
      this.#nameOf.set(id, name);
    }
    return name;
  }

  async records(): Promise<JobRecord[]> {
    const jobs = await this.store.list({}, { limit: 1_000 });
    return jobs.map((job) => Object.assign({}, job, { id: String(this.name(job.id)) }));
  }
}

export interface Step {
  readonly title: string;
  /** How it may move jobs. */
  readonly by: readonly MoveCause[];
  readonly passMs?: number;
  /** The answer, in names. */
  run(side: Side): Promise<unknown>;
}

export const QUEUES = ["a", "b"] as const;

/** What may be done next, when so many jobs and claims are known. */
export function randomStep(random: () => number, known: Side): Step {
  const draw = drawer(random);
  const queue = draw.of(QUEUES);
  const kind = draw.of([
    "add",
    "add",
    "claim",
    "claim",
    "settle",
    "settle",
    "pass",
    "pass",
    "heartbeat",
    "sweep",
    "rest",
  ]);
  switch (kind) {
    case "add":
      return add(draw, queue);
    case "claim":
      return claim(queue, draw.below(3) + 1, draw.of([10, 30]));
    case "settle":
      return settle(
        Array.from({ length: draw.below(3) + 1 }, () => [draw.below(known.claims.length), drawOutcome(draw)]),
      );
    case "heartbeat":
      return heartbeat(draw.below(known.claims.length), draw.of([5, 40]));
    case "sweep":
      return sweep(draw.of([undefined, queue]), draw.of([undefined, 1, 2]));
    case "pass":
      return pass(draw.of([1, 9, 10, 25]));
    case "rest":
      return rest(draw, queue, known);
    default:
      return kind satisfies never;
  }
}

export function pass(ms: number): Step {
  return { title: `${ms} ms pass`, by: ["time"], passMs: ms, run: async () => undefined };
}

type Outcome = Partial<Settlement> & Pick<Settlement, "kind">;
type Draw = ReturnType<typeof drawer>;

function drawer(random: () => number) {
  const below = (count: number): number => Math.floor(random() * count);
  return { below, of: <const T>(values: readonly T[]): T => values[below(values.length)] as T };
}

function add(draw: Draw, queue: string): Step {
  const jobs = Array.from({ length: draw.below(3) + 1 }, () => ({
    queue,
    payload: { n: draw.below(100) },
    priority: draw.of([0, 0, 1, -1]),
    delayMs: draw.of([0, 0, 5, 20]),
    maxAttempts: draw.of([1, 2, 4]),
    uniqueKey: draw.of([undefined, "k", "l"]),
    onConflict: draw.of(["keep", "replace"]),
  }));
  return {
    title: `add ${JSON.stringify(jobs)}`,
    by: ["replace"],
    async run(side) {
      const added = await side.store.add(jobs);
      return added.map(({ id, outcome }) => [side.name(id), outcome]);
    },
  };
}

function claim(queue: string, max: number, leaseMs: number): Step {
  return {
    title: `claim ${max} of ${queue} for ${leaseMs} ms`,
    by: ["claim"],
    async run(side) {
      const jobs = await side.store.claim({ queue, max, leaseMs, worker: "walk" });
      return jobs.map(({ id, token, ...job }) => [side.name(id), side.claims.push({ id, token }) - 1, job]);
    },
  };
}

function drawOutcome(draw: Draw): Outcome {
  return draw.of<Outcome>([
    { kind: "complete" },
    { kind: "complete", result: [1] },
    { kind: "fail", error: "no" },
    { kind: "fail", error: "not yet", retryInMs: draw.of([0, 0.5, 15]) },
    { kind: "snooze", delayMs: draw.of([0, 12]), reason: draw.of([undefined, "busy"]) },
    { kind: "release" },
  ]);
}

function settle(chosen: readonly (readonly [number, Outcome])[]): Step {
  return {
    title: `settle ${JSON.stringify(chosen)}`,
    by: ["complete", "retry", "fail", "snooze", "release", "duplicate"],
    run: (side) =>
      side.store.settle(
        chosen.flatMap(([index, act]) => (side.claims[index] ? [{ ...side.claims[index], ...act } as Settlement] : [])),
      ),
  };
}

function heartbeat(index: number, leaseMs: number): Step {
  return {
    title: `heartbeat of claim ${index} for ${leaseMs} ms`,
    by: [],
    run: (side) => side.store.heartbeat(side.claims.slice(index, index + 2), leaseMs),
  };
}

function sweep(queue: string | undefined, maxCrashes: number | undefined): Step {
  return {
    title: `sweep ${queue ?? "all"}, maxCrashes ${maxCrashes}`,
    by: ["crash", "duplicate"],
    async run(side) {
      const { ended, ...counts } = await side.store.sweep({ queue, maxCrashes });
      return [counts, ended.map(({ id, ...job }) => [side.name(id), job])];
    },
  };
}

function rest(draw: Draw, queue: string, known: Side): Step {
  const job = draw.below(known.ids.length);
  const ids = (side: Side): string[] => side.ids.slice(job, job + 2);
  return draw.of<Step>([
    { title: `cancel ${job}`, by: ["cancel"], run: (side) => side.store.cancel({ ids: ids(side) }) },
    { title: `redrive ${job}`, by: ["redrive"], run: (side) => side.store.redrive({ ids: ids(side) }) },
    { title: `redrive ${queue}`, by: ["redrive"], run: (side) => side.store.redrive({ queue }) },
    { title: "prune", by: [], run: (side) => side.store.prune() },
  ]);
}
