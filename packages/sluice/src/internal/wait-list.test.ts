import { getEventListeners } from "node:events";
import { types } from "node:util";
import { expect, it } from "vitest";
import { systemClock } from "../clock/system.ts";
import { VirtualClock } from "../testing/virtual-clock.ts";
import { asPlainPromise, Wait } from "./wait.ts";
import { WaitList } from "./wait-list.ts";

it("ends all but those that are spared, who are next", async () => {
  const list = new WaitList<void, string>();
  const clock = new VirtualClock();
  const waits = ["a", "b", "c"].map((id) => list.wait({}, clock, id));
  list.rejectAll(new Error("closed"), 1);
  expect(list.inOrder().map(({ brought }) => brought)).toEqual(["a"]);
  list.shift()?.grant();
  const outcomes = await Promise.allSettled(waits);
  expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected"]);
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

class StuckClock extends VirtualClock {
  override setTimer(...given: Parameters<VirtualClock["setTimer"]>): ReturnType<VirtualClock["setTimer"]> {
    return Object.assign(super.setTimer(...given), {
      cancel() {
        throw new Error("stuck");
      },
    });
  }
}

it("tells all waits of an abort though the clock of one throws when it lets its timer go", async () => {
  const list = new WaitList<void>();
  const call = new AbortController();
  const thrown = new Promise((resolve) => process.once("unhandledRejection", resolve));
  const first = list.wait({ signal: call.signal, timeoutMs: 5 }, new StuckClock(), undefined);
  const second = list.wait({ signal: call.signal }, new VirtualClock(), undefined);
  first.catch(() => {});
  call.abort("gone");
  await expect(second).rejects.toBe("gone");
  expect(await thrown).toMatchObject({ message: "stuck" });
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
