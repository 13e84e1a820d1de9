import * as fc from "fast-check";
import { expect, it } from "vitest";
import { CountingController } from "../testing/counting-signal.ts";
import { turn } from "../testing/turn.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { PriorityWaitList } from "./priority-wait-list.ts";
import type { Wait } from "./wait.ts";

interface Entry {
  readonly id: number;
  readonly joinedAt: number;
  readonly wait: Wait<number, number>;
  readonly signal: number;
  readonly endsAt: number;
  priority: number;
  /** Among those of its priority. */
  order: number;
}

/** Who would be next: by priority and age, in a line that is searched anew each time. */
class Model {
  readonly line: Entry[] = [];
  readonly #agingMs: number;

  constructor(agingMs: number) {
    this.#agingMs = agingMs;
  }

  get inOrder(): Entry[] {
    const lanes = new Map<number, Entry[]>();
    for (const entry of this.line.toSorted((a, b) => a.order - b.order)) {
      lanes.set(entry.priority, [...(lanes.get(entry.priority) ?? []), entry]);
    }
    const ordered: Entry[] = [];
    while (ordered.length < this.line.length) {
      const heads = [...lanes.values()].flatMap((lane) => lane.slice(0, 1));
      const [next] = heads.toSorted((a, b) => this.#urgency(b) - this.#urgency(a) || b.priority - a.priority);
      if (next !== undefined) ordered.push(next);
      lanes.get(next?.priority ?? 0)?.shift();
    }
    return ordered;
  }

  remove(entry: Entry | undefined): void {
    if (entry !== undefined) this.line.splice(this.line.indexOf(entry), 1);
  }

  #urgency({ priority, joinedAt }: Entry): number {
    return this.#agingMs === Infinity ? priority : priority * this.#agingMs - joinedAt;
  }
}

const step = fc.oneof(
  fc.record({ kind: fc.constant("join" as const), n: fc.nat(2), ms: fc.constantFrom(Infinity, Infinity, 5, 20) }),
  fc.record({ kind: fc.constantFrom("shift", "move", "remove", "abort", "advance"), n: fc.nat(5), ms: fc.nat(10) }),
);

it.each([Infinity, 0, 10])(
  "does what a sorted line does, with signals shared and a step of age each %d ms",
  (agingMs) => {
    const plans = fc.asyncProperty(fc.array(step, { maxLength: 60 }), (plan) => play(agingMs, plan));
    return fc.assert(plans, { numRuns: 300 });
  },
);

async function play(
  agingMs: number,
  plan: readonly { readonly kind: string; readonly n: number; readonly ms: number }[],
): Promise<void> {
  const clock = new VirtualClock();
  const left: number[] = [];
  const list = new PriorityWaitList<number, number>({ agingMs, onLeave: (id) => void left.push(id) });
  const model = new Model(agingMs);
  const calls = [new CountingController(), new CountingController()];
  const settled = new Map<number, unknown>();
  const expected = new Map<number, unknown>();
  const gone: number[] = [];
  for (const [id, { kind, n, ms }] of plan.entries()) {
    const ordered = model.inOrder;
    const picked = ordered[n % Math.max(1, ordered.length)];
    if (kind === "join") {
      const options = { signal: n < 2 ? calls[n]?.signal : undefined, timeoutMs: ms };
      const promise = list.wait(options, clock, id, n - 1);
      promise.then(
        (value) => settled.set(id, value),
        (reason: { code?: string }) => settled.set(id, reason.code ?? reason),
      );
      const now = clock.now();
      const wait = promise as Wait<number, number>;
      model.line.push({ id, joinedAt: now, wait, signal: n, endsAt: now + ms, priority: n - 1, order: id });
    } else if (kind === "shift") {
      const wait = list.shift();
      expect(wait).toBe(ordered[0]?.wait);
      wait?.grant(id);
      if (ordered[0] !== undefined) expected.set(ordered[0].id, id);
      model.remove(ordered[0]);
    } else if (kind === "move" && picked !== undefined) {
      list.move(picked.wait, ms % 3);
      if (picked.priority !== ms % 3) [picked.priority, picked.order] = [ms % 3, id];
    } else if (kind === "remove" && picked !== undefined) {
      list.remove(picked.wait);
      list.remove(picked.wait); // which has left, and leaves nothing twice
      list.move(picked.wait, 9);
      picked.wait.reject(new Error("has left"));
      model.remove(picked);
    } else if (kind === "abort") {
      const call = calls[n % 2];
      calls[n % 2] = new CountingController();
      const leaving = model.line.filter(({ signal }) => signal === n % 2);
      call?.abort(`abort ${id}`);
      for (const entry of leaving) {
        expected.set(entry.id, `abort ${id}`);
        model.remove(entry);
      }
      gone.push(...leaving.map((entry) => entry.id));
      expect(call?.listeners).toBe(0);
    } else if (kind === "advance") {
      await clock.advance(ms);
      for (const entry of model.line.filter(({ endsAt }) => endsAt <= clock.now())) {
        expected.set(entry.id, "TIMEOUT");
        model.remove(entry);
        gone.push(entry.id);
      }
    }
    const now = model.inOrder;
    expect(list.inOrder().map(({ brought }) => brought)).toEqual(now.map((entry) => entry.id));
    expect([list.size, list.first]).toEqual([now.length, now[0]?.wait]);
    expect(list.oldestWaitMs(clock)).toBe(clock.now() - (now[0]?.joinedAt ?? clock.now()));
    for (const [index, call] of calls.entries()) {
      expect(call.listeners).toBe(model.line.some(({ signal }) => signal === index) ? 1 : 0);
    }
    expect(clock.timers).toBe(model.line.filter(({ endsAt }) => endsAt < Infinity).length);
    expect(left.toSorted((a, b) => a - b)).toEqual(gone.toSorted((a, b) => a - b));
  }
  await turn();
  expect(new Map([...settled].toSorted(([a], [b]) => a - b))).toEqual(
    new Map([...expected].toSorted(([a], [b]) => a - b)),
  );
  expect([list.aborted, list.timedOut]).toEqual([
    [...expected.values()].filter((reason) => String(reason).startsWith("abort")).length,
    [...expected.values()].filter((reason) => reason === "TIMEOUT").length,
  ]);
}

it("finds its place among any number of priorities", () => {
  const plans = fc.property(fc.array(fc.integer({ min: -20, max: 20 }), { maxLength: 60 }), (priorities) => {
    const list = new PriorityWaitList<void, number>({});
    const clock = new VirtualClock();
    for (const priority of priorities) void list.wait({}, clock, priority, priority);
    const served = priorities.map(() => list.shift()?.brought);
    expect(served).toEqual(priorities.toSorted((a, b) => b - a));
  });
  return fc.assert(plans);
});

it("ends all but those that are spared, who are next", async () => {
  const list = new PriorityWaitList<void, string>({});
  const clock = new VirtualClock();
  const waits = ["a", "b", "c", "d"].map((id, index) => list.wait({}, clock, id, index % 2));
  list.rejectAll(new Error("closed"), 1);
  expect(list.inOrder().map(({ brought }) => brought)).toEqual(["b"]);
  list.shift()?.grant();
  const outcomes = await Promise.allSettled(waits);
  expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "rejected", "rejected"]);
});

it("says whose turn it would be who joined now", async () => {
  const clock = new VirtualClock();
  const list = new PriorityWaitList<void>({ agingMs: 10 });
  expect(list.wouldBeFirst(-5, clock)).toBe(true);
  void list.wait({}, clock, undefined, 1);
  expect([0, 1, 2].map((priority) => list.wouldBeFirst(priority, clock))).toEqual([false, false, true]);
  await clock.advance(20);
  expect([2, 3, 4].map((priority) => list.wouldBeFirst(priority, clock))).toEqual([false, true, true]);
});

it("lists all in order by about as many comparisons for each of 4 000 priorities as for each of 500", () => {
  const compared = [500, 4_000].map((size) => {
    let reads = 0;
    const agingMs = {
      valueOf: () => {
        reads += 1;
        return 1;
      },
    } as unknown as number;
    const list = new PriorityWaitList<void>({ agingMs });
    for (let priority = 0; priority < size; priority += 1) void list.wait({}, new VirtualClock(), undefined, priority);
    reads = 0;
    expect(list.inOrder()).toHaveLength(size);
    return reads / size;
  });
  expect(compared[1]).toBeLessThan(2 * (compared[0] ?? 0));
});
