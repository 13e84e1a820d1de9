import * as fc from "fast-check";
import { expect, it } from "vitest";
import { gcra, type GcraLimit, gcraReserve } from "./gcra.ts";

const NEW = -Infinity;

/** What has been let through, in order. */
function play(limit: GcraLimit, calls: readonly { readonly now: number; readonly cost: number }[]): boolean[] {
  let tat = NEW;
  return calls.map(({ now, cost }) => {
    const decision = gcra(tat, now, limit, cost);
    tat = decision.tat;
    return decision.allowed;
  });
}

/** The same with tokens that are counted: the bucket holds `burst * intervalMs` grains, and one comes back each ms. */
function count({ intervalMs, burst }: GcraLimit, calls: readonly { readonly now: number; readonly cost: number }[]) {
  let [grains, before] = [burst * intervalMs, calls[0]?.now ?? 0];
  return calls.map(({ now, cost }) => {
    grains = Math.min(burst * intervalMs, grains + now - before);
    before = now;
    if (grains < cost * intervalMs) return false;
    grains -= cost * intervalMs;
    return true;
  });
}

const limits = fc.record({ intervalMs: fc.integer({ min: 1, max: 20 }), burst: fc.integer({ min: 1, max: 6 }) });
const steps = fc.array(fc.record({ afterMs: fc.integer({ min: 0, max: 40 }), cost: fc.integer({ min: 1, max: 7 }) }));

function timed(plan: readonly { afterMs: number; cost: number }[]): { now: number; cost: number }[] {
  let now = 0;
  return plan.map(({ afterMs, cost }) => ({ now: (now += afterMs), cost }));
}

it("decides as a bucket of counted tokens does", () => {
  const plans = fc.property(limits, steps, (limit, plan) => {
    const calls = timed(plan);
    expect(play(limit, calls)).toEqual(count(limit, calls));
  });
  fc.assert(plans, { numRuns: 2_000 });
});

it("lets no more than count + burst - 1 into any span shorter than the unit, whatever comes when", () => {
  const plans = fc.property(limits, fc.integer({ min: 1, max: 8 }), steps, ({ intervalMs, burst }, perUnit, plan) => {
    const calls = timed(plan.map(({ afterMs }) => ({ afterMs: afterMs % 5, cost: 1 })));
    const starts = play({ intervalMs, burst }, calls).flatMap((allowed, index) => (allowed ? [calls[index]!.now] : []));
    for (const from of starts) {
      const span = starts.filter((at) => at >= from && at < from + perUnit * intervalMs);
      expect(span.length).toBeLessThanOrEqual(perUnit + burst - 1);
    }
  });
  fc.assert(plans, { numRuns: 500 });
});

it("reaches 2 * count - 1 in one span with burst = count", () => {
  const limit = { intervalMs: 100, burst: 10 };
  const calls = Array.from({ length: 20 }, (_, i) => ({ now: i < 10 ? 0 : (i - 9) * 100, cost: 1 }));
  const starts = play(limit, calls).flatMap((allowed, i) => (allowed ? [calls[i]?.now ?? 0] : []));
  expect(starts.filter((at) => at < 1_000).length).toBe(19);
});

it("names the earliest instant at which the call would be allowed", () => {
  const plans = fc.property(limits, steps, (limit, plan) => {
    let tat = NEW;
    for (const { now, cost } of timed(plan)) {
      const decision = gcra(tat, now, limit, cost);
      expect(decision.allowed).toBe(decision.retryAfterMs === 0);
      if (decision.retryAfterMs > 0 && decision.retryAfterMs < Infinity) {
        expect(gcra(tat, now + decision.retryAfterMs, limit, cost).allowed).toBe(true);
        expect(gcra(tat, now + decision.retryAfterMs - 1, limit, cost).allowed).toBe(false);
      }
      tat = decision.tat;
    }
  });
  fc.assert(plans);
});

it("charges nothing for what it refuses", () => {
  const limit = { intervalMs: 10, burst: 2 };
  const { tat } = gcra(NEW, 100, limit, 2);
  expect(gcra(tat, 105, limit, 2)).toEqual({ allowed: false, tat, retryAfterMs: 15 });
});

it("C127: holds no more than a full bucket, however long it was idle", () => {
  const limit = { intervalMs: 500 / 3, burst: 3 };
  for (const tat of [NEW, 0]) {
    const calls = [5_000, 5_010, 5_020, 5_050].map((now) => ({ now, cost: 1 }));
    let last = tat;
    const allowed = calls.map(({ now }) => {
      const decision = gcra(last, now, limit);
      last = decision.tat;
      return decision.allowed;
    });
    expect(allowed).toEqual([true, true, true, false]);
  }
});

it("never allows more than a full bucket holds, and says so", () => {
  expect(gcra(NEW, 0, { intervalMs: 10, burst: 2 }, 3)).toEqual({ allowed: false, tat: NEW, retryAfterMs: Infinity });
});

it("reserves the turns that a line would give, first come, first served", () => {
  const costs = fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 20 });
  const plans = fc.property(limits, costs, fc.array(fc.integer({ min: 0, max: 30 })), (limit, wanted, gaps) => {
    let [reserved, taken, now, turn] = [NEW, NEW, 0, 0];
    for (const [index, cost] of wanted.filter((each) => each <= limit.burst).entries()) {
      now += gaps[index] ?? 0;
      const reservation = gcraReserve(reserved, now, limit, cost);
      reserved = reservation.tat;
      // Who waits in line asks from the turn of the one ahead on, until it is allowed.
      turn = Math.max(turn, now);
      turn += gcra(taken, turn, limit, cost).retryAfterMs;
      taken = gcra(taken, turn, limit, cost).tat;
      expect(now + reservation.waitMs).toBe(turn);
    }
  });
  fc.assert(plans);
});

it("reserves more than a full bucket for when that much has come together", () => {
  expect(gcraReserve(NEW, 1_000, { intervalMs: 10, burst: 2 }, 5)).toEqual({ tat: 1_050, waitMs: 30 });
});

it("refuses what is no limit, cost or instant", () => {
  const good = { intervalMs: 10, burst: 2 };
  for (const bad of [
    () => gcra(0, 0, { ...good, intervalMs: 0 }),
    () => gcra(0, 0, { ...good, intervalMs: Infinity }),
    () => gcra(0, 0, { ...good, intervalMs: Number.NaN }),
    () => gcra(0, 0, { ...good, burst: 0 }),
    () => gcra(0, 0, { ...good, burst: 1.5 }),
    () => gcra(0, 0, good, 0),
    () => gcra(0, 0, good, 0.5),
    () => gcra(Number.NaN, 0, good),
    () => gcra(0, Number.NaN, good),
    () => gcraReserve(0, Infinity, good),
  ])
    expect(bad).toThrow(RangeError);
  for (const none of [undefined, null, "0"] as unknown as number[]) {
    expect(() => gcra(none, 0, good)).toThrow("tat must be a number"); // a row that isn't there must not be let in
    expect(() => gcra(0, 0, { ...good, intervalMs: none })).toThrow(TypeError);
  }
});
