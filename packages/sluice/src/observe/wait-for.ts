/**
 * Who waits for whom, as far as it can be told: a wait is stuck if all that could end it is held by who is stuck
 * himself. The largest set of waits of which that is true is what no grant will ever end.
 */
import type { Stats } from "../internal/names.ts";
import { type Activity, isWithin } from "./activity.ts";
import type { Hold, Lender, Waiting } from "./ledger.ts";
import { readingsOf } from "./readings.ts";

/** What stands between a wait and its grant. */
type Obstacle = Hold | Activity;

export class WaitFor {
  // I1  a wait is in #stuck only if its lender's holds, or parties, are known and stuck: all of them, or one where one is enough
  readonly #stuck = new Set<Waiting>();
  /** Waits of an activity and of those that descend from it. */
  readonly #within = new Map<Activity, Waiting[]>();

  /** Of the waits that have lasted `stallMs`. */
  constructor(lenders: readonly Lender[], now: number, stallMs: number) {
    for (const lender of lenders) {
      for (const wait of lender.waits) {
        if (now - wait.since < stallMs) continue;
        this.#stuck.add(wait);
        for (let by = wait.by; by !== undefined; by = by.parent) {
          const waits = this.#within.get(by);
          if (waits === undefined) this.#within.set(by, [wait]);
          else waits.push(wait);
        }
      }
    }
    for (let before = Infinity; before > this.#stuck.size;) {
      before = this.#stuck.size;
      for (const wait of this.#stuck) if (!this.#isStuck(wait)) this.#stuck.delete(wait);
    }
  }

  /** Each ring of waits, once: every one waits for what the next one's activity holds, and the last for the first. */
  rings(): Waiting[][] {
    const done = new Set<Waiting>();
    const rings: Waiting[][] = [];
    for (const start of this.#stuck) {
      const path: Waiting[] = [];
      let wait: Waiting | undefined = start;
      for (; wait !== undefined && !done.has(wait) && !path.includes(wait); wait = this.#next(wait)) path.push(wait);
      if (wait !== undefined && !done.has(wait)) rings.push(path.slice(path.indexOf(wait)));
      for (const each of path) done.add(each);
    }
    return rings;
  }

  #isStuck({ lender }: Waiting): boolean {
    const obstacles = obstaclesOf(lender);
    if (obstacles.length === 0) return false;
    const isStuck = (each: Obstacle): boolean => isCollected(each) || this.#through(each) !== undefined;
    return needsAll(lender) ? obstacles.some(isStuck) : obstacles.every(isStuck) && isKnown(lender);
  }

  #next({ lender }: Waiting): Waiting | undefined {
    for (const obstacle of obstaclesOf(lender)) {
      const wait = this.#through(obstacle);
      if (wait !== undefined) return wait;
    }
    return undefined;
  }

  /** A stuck wait that keeps `obstacle` from going away. */
  #through(obstacle: Obstacle): Waiting | undefined {
    const by = "lender" in obstacle ? obstacle.by : obstacle;
    return by === undefined ? undefined : this.#within.get(by)?.find((wait) => this.#stuck.has(wait));
  }
}

function obstaclesOf({ holds, parties, waits }: Lender): Obstacle[] {
  if (parties.size === 0) return [...holds];
  const present = [...waits].map(({ by }) => by).filter((by) => by !== undefined);
  return [...parties].filter((party) => !present.some((by) => isWithin(by, party)));
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
