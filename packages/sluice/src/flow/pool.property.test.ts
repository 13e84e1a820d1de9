import { getEventListeners } from "node:events";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { turn } from "../testing/turn.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { Pool } from "./pool.ts";
import type { Lease } from "./pool-lease.ts";

interface Plan {
  readonly max: number;
  readonly min: number;
  readonly steps: readonly (readonly [verb: string, luck: number])[];
}

it("keeps I1 to I4, loses nothing and lends nothing twice under any plan of calls, aborts, failures and ages", () => {
  const verbs = [
    "acquire",
    "acquire",
    "hurry",
    "try",
    "run",
    "release",
    "release",
    "invalidate",
    "abort",
    "10 ms",
    "1 s",
  ];
  const step = fc.tuple(fc.constantFrom(...verbs, "settle"), fc.nat(9));
  const plans = fc.record({
    max: fc.integer({ min: 1, max: 4 }),
    min: fc.integer({ min: 0, max: 1 }),
    steps: fc.array(step, { maxLength: 40 }),
  });
  return fc.assert(fc.asyncProperty(plans, play), { numRuns: 1_000 });
});

/** What happens in time takes 7 ms; `luck` says whether it fails. */
async function play({ max, min, steps }: Plan): Promise<void> {
  const clock = new VirtualClock();
  const alive = new Set<number>();
  const lent = new Set<number>();
  const leases: Lease<number>[] = [];
  const granted: number[] = [];
  const faults: string[] = []; // gathered, since the pool takes what its callbacks throw for failures
  let made = 0;
  let luck = 5;
  const later = (): Promise<void> => new Promise((resolve) => void clock.setTimer(7, { onTimer: resolve }));
  const pool = new Pool<number>(max, {
    async create() {
      const fails = luck === 0;
      const isSlow = luck % 2 === 0;
      made += 1;
      const id = made;
      if (isSlow) await later();
      if (fails) throw new Error("create");
      alive.add(id);
      if (alive.size > max) faults.push(`${alive.size} of ${max} exist`);
      return id;
    },
    async destroy(id) {
      if (!alive.has(id) || lent.has(id)) faults.push(`${id} is destroyed twice, or while it is lent`);
      if (luck % 3 === 0) await later();
      alive.delete(id);
      if (luck === 9) throw new Error("destroy");
    },
    validate: () => (luck % 2 === 0 ? luck !== 8 : later().then(() => luck !== 7)),
    min,
    idleMs: 500,
    lifetimeMs: 2_500,
    onError: () => {},
    clock,
  });
  const take = (lease: Lease<number>): Lease<number> => {
    if (lent.has(lease.resource) || !alive.has(lease.resource)) faults.push(`${lease.resource} is lent twice, or dead`);
    lent.add(lease.resource);
    leases.push(lease);
    return lease;
  };
  const giveBack = (lease: Lease<number> | undefined): void => {
    if (lease !== undefined) lent.delete(lease.resource);
    lease?.release();
    lease?.release();
  };
  let call = new AbortController();
  for (const [id, [verb, chance]] of [...steps, ["abort", 5] as const, ["settle", 5] as const].entries()) {
    luck = chance;
    const { signal } = call;
    const keep = (lease: Lease<number>): void => void (take(lease), granted.push(id));
    if (verb === "acquire") pool.acquire({ signal }).then(keep, () => {});
    else if (verb === "hurry") pool.acquire({ signal, timeoutMs: 10 }).then(keep, () => {});
    else if (verb === "try") [pool.tryAcquire()].forEach((lease) => lease !== undefined && take(lease));
    else if (verb === "run") pool.run(() => later(), { signal }).catch(() => {});
    else if (verb === "release") giveBack(leases.shift());
    else if (verb === "invalidate") pool.invalidate(leases[0]?.resource ?? made);
    else if (verb === "abort") call = (call.abort(), new AbortController());
    else if (verb === "settle") await turn();
    else await clock.advance(verb === "1 s" ? 1_000 : 10);
    const { size, idle, borrowed, checking, creating, destroying, waiting } = pool.stats();
    expect([idle + borrowed + checking + creating + destroying, size <= max]).toEqual([size, true]); // I1
    if (waiting > checking + creating) expect([size, idle]).toEqual([max, 0]); // I2
    expect(getEventListeners(signal, "abort").length).toBe(waiting > 0 ? 1 : 0);
  }
  expect(faults).toEqual([]);
  expect(granted).toEqual(granted.toSorted((a, b) => a - b)); // I3
  luck = 5;
  const closed = pool.close();
  for (const lease of leases) giveBack(lease);
  await clock.advance(100);
  await closed;
  expect([alive.size, lent.size, pool.size, pool.waiting, clock.timers]).toEqual([0, 0, 0, 0, 0]); // I4
  const { created, destroyed } = pool.stats();
  expect(created).toBe(destroyed);
}
