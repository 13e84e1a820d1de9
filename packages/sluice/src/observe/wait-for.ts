/**
 * Who waits for whom, as far as it can be told: a wait is stuck if all that could end it is held by who is stuck
 * himself. The largest set of waits of which that is true is what no grant will ever end.
 */
import type { Stats } from "../internal/names.ts";
import type { Activity } from "./activity.ts";
import type { Hold, Lender, Waiting } from "./ledger.ts";
import { readingsOf } from "./readings.ts";

/** What stands between a wait and its grant. */
type Obstacle = Hold | Activity;

export class WaitFor {
  // I1  a wait is in #stuck only if its lender's holds, or parties, are known and stuck: all of them, or one where one is enough
  // I2  a lender is judged anew only when an activity among its obstacles has lost its last stuck wait
  readonly #stuck = new Set<Waiting>();
  /** The stuck waits of an activity and of those that descend from it. */
  readonly #within = new Map<Activity, Set<Waiting>>();
  readonly #obstacles = new Map<Lender, readonly Obstacle[]>();

  /** Of the waits that have lasted `stallMs`. */
  constructor(lenders: readonly Lender[], now: number, stallMs: number) {
    const waitsOf = new Map<Lender, readonly Waiting[]>();
    const blockedBy = new Map<Activity, Lender[]>();
    for (const lender of lenders) {
      const waits = [...lender.waits].filter(({ since }) => now - since >= stallMs);
      if (waits.length === 0) continue;
      waitsOf.set(lender, waits);
      for (const wait of waits) this.#add(wait);
      const obstacles = obstaclesOf(lender);
      this.#obstacles.set(lender, obstacles);
      for (const by of new Set(obstacles.map(actorOf))) if (by !== undefined) pushTo(blockedBy, by, lender);
    }
    const doubtful = [...waitsOf.keys()];
    for (let lender = doubtful.pop(); lender !== undefined; lender = doubtful.pop()) {
      const waits = waitsOf.get(lender);
      if (waits === undefined || this.#isBlocked(lender)) continue;
      waitsOf.delete(lender);
      for (const wait of waits) for (const freed of this.#remove(wait)) doubtful.push(...(blockedBy.get(freed) ?? []));
    }
  }

  /** Each ring of waits, once: every one waits for what the next one's activity holds, and the last for the first. */
  rings(): Waiting[][] {
    const done = new Set<Waiting>();
    const rings: Waiting[][] = [];
    for (const start of this.#stuck) {
      const path = new Set<Waiting>();
      let wait: Waiting | undefined = start;
      for (; wait !== undefined && !done.has(wait) && !path.has(wait); wait = this.#next(wait)) path.add(wait);
      const steps = [...path];
      if (wait !== undefined && !done.has(wait)) rings.push(steps.slice(steps.indexOf(wait)));
      for (const each of path) done.add(each);
    }
    return rings;
  }

  #add(wait: Waiting): void {
    this.#stuck.add(wait);
    for (let by = wait.by; by !== undefined; by = by.parent) {
      const waits = this.#within.get(by);
      if (waits === undefined) this.#within.set(by, new Set([wait]));
      else waits.add(wait);
    }
  }

  /** Gives the activities in which nothing is stuck any more. */
  #remove(wait: Waiting): Activity[] {
    this.#stuck.delete(wait);
    const freed: Activity[] = [];
    for (let by = wait.by; by !== undefined; by = by.parent) {
      const waits = this.#within.get(by);
      waits?.delete(wait);
      if (waits?.size === 0) freed.push(by);
    }
    return freed;
  }

  #isBlocked(lender: Lender): boolean {
    const obstacles = this.#obstacles.get(lender) ?? [];
    if (obstacles.length === 0) return false;
    const isStuck = (each: Obstacle): boolean => isCollected(each) || this.#through(each) !== undefined;
    return needsAll(lender) ? obstacles.some(isStuck) : obstacles.every(isStuck) && isKnown(lender);
  }

  #next({ lender }: Waiting): Waiting | undefined {
    for (const obstacle of this.#obstacles.get(lender) ?? []) {
      const wait = this.#through(obstacle);
      if (wait !== undefined) return wait;
    }
    return undefined;
  }

  /** A stuck wait that keeps `obstacle` from going away. */
  #through(obstacle: Obstacle): Waiting | undefined {
    const by = actorOf(obstacle);
    const [first] = (by === undefined ? undefined : this.#within.get(by)) ?? [];
    return first;
  }
}

function actorOf(obstacle: Obstacle): Activity | undefined {
  return "lender" in obstacle ? obstacle.by : obstacle;
}

function obstaclesOf({ holds, parties, waits }: Lender): Obstacle[] {
  if (parties.size === 0) return [...holds];
  const present = new Set<Activity>();
  for (const wait of waits) for (let by = wait.by; by !== undefined; by = by.parent) present.add(by);
  return [...parties].filter((party) => !present.has(party));
}

function pushTo<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const values = map.get(key);
  if (values === undefined) map.set(key, [value]);
  else values.push(value);
}

function isCollected(obstacle: Obstacle): boolean {
  return "isCollected" in obstacle && obstacle.isCollected;
}

/** One that doesn't go away is enough to keep all waiting. */
function needsAll({ subject, parties }: Lender): boolean {
  return parties.size > 0 || subject.kind === "rw-lock";
}

/** Whether nothing was taken unobserved. */
function isKnown({ holds, target }: Lender): boolean {
  let known = 0;
  for (const { weight } of holds) known += weight;
  return known >= outstanding(target.deref());
}

/** How much is lent out, by the stats of what lends; 0 where they don't say. */
function outstanding(target: object | undefined): number {
  if (target === undefined || !("stats" in target) || typeof target.stats !== "function") return 0;
  const stats = target.stats() as Stats;
  return readingsOf(stats).used ?? 0;
}
