import { getEventListeners } from "node:events";
import { types } from "node:util";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { systemClock } from "../clock/system.ts";
import { CountingController } from "../testing/counting-signal.ts";
import { turn } from "../testing/turn.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { asPlainPromise, Wait } from "./wait.ts";
import { WaitList } from "./wait-list.ts";

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
  const list = new WaitList<number, number>({ agingMs, onLeave: (id) => void left.push(id) });
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

it("ends all but those that are spared, who are next", async () => {
  const list = new WaitList<void, string>();
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
  const list = new WaitList<void>({ agingMs: 10 });
  expect(list.wouldBeFirst(-5, clock)).toBe(true);
  void list.wait({}, clock, undefined, 1);
  expect([0, 1, 2].map((priority) => list.wouldBeFirst(priority, clock))).toEqual([false, false, true]);
  await clock.advance(20);
  expect([2, 3, 4].map((priority) => list.wouldBeFirst(priority, clock))).toEqual([false, true, true]);
});

it("knows which wait is about to hear of its abort, and lists those who are not", () => {
  const seen: string[][] = [];
  const list: WaitList<void, string> = new WaitList({
    onLeave: () => void seen.push(list.live().map(({ brought }) => brought)),
  });
  const clock = new VirtualClock();
  const call = new AbortController();
  const wait = (id: string, signal?: AbortSignal): unknown => list.wait({ signal }, clock, id).catch(() => {});
  wait("a", call.signal);
  wait("b");
  wait("c", call.signal);
  call.abort();
  expect(seen).toEqual([["b"], ["b"]]);
});

it("lets the abort win when it falls in one turn with the timeout, whichever timer was set first", async () => {
  const clock = new VirtualClock();
  const list = new WaitList<void>();
  const [early, late] = [new AbortController(), new AbortController()];
  clock.setTimer(10, { onTimer: () => early.abort("early") });
  const waits = [early, late].map(({ signal }) => list.wait({ signal, timeoutMs: 10 }, clock, undefined));
  clock.setTimer(10, { onTimer: () => late.abort("late") });
  const outcomes = Promise.allSettled(waits);
  await clock.advance(10);
  expect(await outcomes).toMatchObject([{ reason: "early" }, { reason: "late" }]);
});

it("is as good as any other promise to whoever does not know what it is", async () => {
  const list = new WaitList<number>();
  const [first, second] = [0, 1].map(() => list.wait({}, new VirtualClock(), undefined)) as [
    Promise<number>,
    Promise<number>,
  ];
  expect([first instanceof Promise, types.isPromise(first), Promise.resolve(first) === first]).toEqual([
    true,
    true,
    true,
  ]);
  for (const next of [first.then(() => 0), first.catch(() => 0), first.finally(() => {})])
    expect(Object.getPrototypeOf(next)).toBe(Promise.prototype);
  expect(JSON.stringify({ first, second })).toBe(
    JSON.stringify({ first: Promise.resolve(), second: Promise.resolve() }),
  );
  const joined = [Promise.all([first, second]), Promise.race([second, first]), Promise.any([first, second])];
  list.shift()?.grant(1);
  list.shift()?.grant(2);
  expect(await Promise.all(joined)).toEqual([[1, 2], 1, 1]);
});

it("hears of an abort whose event another listener has stopped", async () => {
  const list = new WaitList<void>();
  const call = new AbortController();
  call.signal.addEventListener("abort", (event) => event.stopImmediatePropagation());
  const wait = expect(list.wait({ signal: call.signal }, new VirtualClock(), undefined)).rejects.toBe("gone");
  call.abort("gone");
  expect([list.size, getEventListeners(call.signal, "abort").length]).toEqual([0, 1]);
  await wait;
});

it("keeps a wait out of the line when its clock or signal throws, with no timer left", () => {
  const clock = new VirtualClock();
  const list = new WaitList<void>();
  const broken = new AbortController().signal;
  broken.addEventListener = () => {
    throw new Error("broken");
  };
  expect(() => list.wait({ signal: broken, timeoutMs: 5 }, clock, undefined)).toThrow("broken");
  expect([list.size, list.first, clock.timers]).toEqual([0, undefined, 0]);
});

it("takes the time for ages from the clock's cheap reading where it has one", () => {
  const clock = { ...systemClock, now: () => 500, coarseNow: () => 200.9 };
  const list = new WaitList<void>();
  void list.wait({}, clock, undefined);
  expect(list.oldestWaitMs(clock)).toBe(300);
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
    const list = new WaitList<void>({ agingMs });
    for (let priority = 0; priority < size; priority += 1) void list.wait({}, new VirtualClock(), undefined, priority);
    reads = 0;
    expect(list.inOrder()).toHaveLength(size);
    return reads / size;
  });
  expect(compared[1]).toBeLessThan(2 * (compared[0] ?? 0));
});

/** Counts what is read and written of the links of a line, and of a signal's watchers. */
class Traced extends Wait<void, number> {
  static touches = 0;

  constructor(id: number) {
    super(0, id);
    for (const link of ["ahead", "behind", "older", "newer"] as const) {
      let value: unknown;
      void Object.defineProperty(this, link, {
        get() {
          Traced.touches += 1;
          return value;
        },
        set(next: unknown) {
          Traced.touches += 1;
          value = next;
        },
      });
    }
    this.catch(() => {});
  }
}

asPlainPromise(Traced);

/** A line whose waits share one signal, but for the one in the middle. */
function tracedLine(size: number): {
  list: WaitList<void, number>;
  middle: Traced;
  call: AbortController;
  all: AbortController;
} {
  const [list, clock] = [new WaitList<void, number>(), new VirtualClock()];
  const [call, all] = [new AbortController(), new AbortController()];
  const waits = Array.from({ length: size }, (_, id) => {
    const { signal } = id === size / 2 ? call : all;
    return list.join(new Traced(id), signal, clock);
  });
  Traced.touches = 0;
  return { list, middle: waits[size / 2] as Traced, call, all };
}

it.each([
  ["its own abort", ({ call }: ReturnType<typeof tracedLine>) => call.abort()],
  ["a rejection, though it shares its signal", ({ list }) => list.inOrder()[7]?.reject(new Error("gone"))],
  ["a removal, though it shares its signal", ({ list }) => list.remove(list.inOrder()[7] as Traced)],
] as [string, (line: ReturnType<typeof tracedLine>) => unknown][])(
  "touches none but its neighbours when a wait leaves the middle by %s, however long the line",
  (_, leave) => {
    const touches = [1_000, 20_000].map((size) => {
      const line = tracedLine(size);
      const walked = leave.toString().includes("inOrder") ? size : 0; // by the test, to find one
      leave(line);
      const { touches: count } = Traced;
      expect(line.list.size).toBe(size - 1);
      return count - walked;
    });
    expect(touches[1]).toBe(touches[0]);
    expect(touches[0]).toBeLessThan(20);
  },
);

it.each([
  [
    "drain it",
    ({ list }: ReturnType<typeof tracedLine>) => Array.from({ length: list.size }, () => list.shift()?.grant()),
  ],
  ["abort all that share a signal", ({ all }) => all.abort()],
] as [string, (line: ReturnType<typeof tracedLine>) => unknown][])(
  "touches as little for each of 20 000 waits as for each of 1 000, to %s",
  (_, end) => {
    const touches = [1_000, 20_000].map((size) => {
      end(tracedLine(size));
      return Traced.touches / size;
    });
    expect(touches[1]).toBeCloseTo(touches[0] ?? 0, 1);
    expect(touches[0]).toBeLessThan(20);
  },
);
